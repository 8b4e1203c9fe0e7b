// Calls that wait for a result: the demo tools run automatically, for the others there are fields.
import { el } from "./dom.js";
import { stick } from "./stick.js";

// A model that calls tools without end is asked about after so many answers in a row.
const ROUNDS = 8;

export async function offer(chat, round) {
  const last = chat.turns.at(-1);
  const { calls } = last;
  const outputs = new Map();
  const runs = chat.settings.byItself && round < ROUNDS && last.status === "completed";
  const { output } = runs ? await import("./tools.js") : {};
  for (const card of calls) {
    const said = runs ? output(card.item) : null;
    if (said !== null) outputs.set(card, said);
  }
  if (outputs.size === calls.length) return give(chat, outputs, round + 1);
  const fields = calls.filter((card) => !outputs.has(card)).map((card) => ask(card, (text) => {
    outputs.set(card, text);
    card.answer(text);
    if (outputs.size === calls.length) give(chat, outputs, 0);
  }));
  fields[0].focus({ preventScroll: true });
}

function give(chat, outputs, round) {
  for (const [card, text] of outputs) card.answer(text);
  stick();
  return chat.send([...outputs].map(([card, text]) => card.outputOf(text)), { round });
}

// A form in the card of a call; `done` gets the text.
function ask(card, done) {
  const field = el("textarea", { rows: "2", required: true, "aria-label": `Result of ${card.item.name}`, placeholder: "Tool result" });
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) done(field.value);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  card.output.replaceChildren(el("form", { onsubmit: submit }, field, el("button", {}, "Submit result")));
  return field;
}
