// Another child of the same parent: a message that is edited, or asked once more.
const BRANCH = "branch_of";

export const edit = (chat, turn, text) => branch(chat, turn, edited(turn.input, text));

export const regenerate = (chat, turn) => branch(chat, turn, turn.input.map(anew));

function branch(chat, turn, input) {
  chat.running?.control.abort();
  const metadata = turn.previous ? turn.metadata : { ...turn.metadata, [BRANCH]: turn.metadata[BRANCH] ?? turn.id };
  const siblings = turn.siblings.length ? turn.siblings : [turn.id];
  chat.conversation = null;
  // The cards that it answered wait again, until the new one answers them.
  chat.cut(chat.turns.indexOf(turn));
  return chat.send(input, { siblings: turn.id ? siblings : [], metadata });
}

// The same item once more, and not the stored one.
function anew({ id, status, ...item }) {
  return item;
}

function edited(input, text) {
  const last = input.findLast((item) => item.role === "user");
  return input.map((item) => {
    if (item !== last) return anew(item);
    const kept = typeof item.content === "string" ? [] : item.content.filter((part) => part.type !== "input_text");
    return { ...anew(item), content: [...kept, { type: "input_text", text }] };
  });
}
