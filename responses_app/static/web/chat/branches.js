// Branches of a conversation: edit a message or regenerate a response.
import { icon } from "../icon.js";
import { button, el } from "./dom.js";

const BRANCH = "branch_of";

export const edit = (chat, turn, text, keeps) => branch(chat, turn, edited(turn.input, text, keeps));

export const regenerate = (chat, turn) => branch(chat, turn, turn.input.map(withoutId));

function branch(chat, turn, input) {
  chat.running?.control.abort();
  const metadata = turn.previous ? turn.metadata : { ...turn.metadata, [BRANCH]: turn.metadata[BRANCH] ?? turn.id };
  const siblings = turn.siblings.length ? turn.siblings : [turn.id];
  chat.conversation = null;
  // Tool calls answered by the removed turn are open again until the new turn answers them.
  chat.truncate(chat.turns.indexOf(turn));
  return chat.send(input, { siblings: turn.id ? siblings : [], metadata });
}

// The item as new input, not as a reference to the stored item.
function withoutId({ id, status, ...item }) {
  return item;
}

// `keeps` tells which parts of the message are sent again.
function edited(input, text, keeps) {
  const last = input.findLast((item) => item.role === "user");
  return input.map((item) => {
    if (item !== last) return withoutId(item);
    const others = typeof item.content === "string" ? [] : item.content.filter(keeps);
    return { ...withoutId(item), content: [...others, { type: "input_text", text }] };
  });
}

// The pressed button, which the buttons of the other branch replace: {id, label}.
let pressed = null;

// Gives the focus of the pressed button to its replacement, which is shown before or after the turns are loaded.
function restoreFocus() {
  const buttons = pressed ? [...document.querySelectorAll(`.branches[data-id="${pressed.id}"] button:enabled`)] : [];
  if (buttons.length === 0) return;
  (buttons.find((one) => one.getAttribute("aria-label") === pressed.label) ?? buttons[0]).focus();
  pressed = null;
}

// Tells below the turns of an older branch that there is a newer one, until the turns change.
export function showNewer(chat, id) {
  chat.list.append(el("li", { class: "newer quiet" }, "This conversation has a newer branch. ", button("Show newest", () => chat.actions.move(id))));
}

// Shows the buttons of the branches before the other actions of a turn.
export function showBranches({ foot, siblings, id, number, actions }) {
  const at = siblings.indexOf(id);
  const step = (symbol, by, label) => button(icon(symbol), () => move(siblings[at + by], label), { class: "plain", "aria-label": label, disabled: !siblings[at + by] });
  function move(to, label) {
    pressed = { id: to, label };
    return actions.move(to).then(restoreFocus);
  }
  foot.querySelector(".branches")?.remove();
  foot.prepend(el("span", { class: "branches", role: "group", "data-id": id, "aria-label": `Branches of answer ${number}` }, step("previous", -1, "Previous branch"), `${at + 1} of ${siblings.length}`, step("next", 1, "Next branch")));
  restoreFocus();
}
