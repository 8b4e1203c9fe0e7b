// Calls that wait for a result: the demo tools run automatically, for the others there are fields.
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
  const fields = calls.filter((card) => !outputs.has(card)).map((card) => card.ask((text) => {
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
