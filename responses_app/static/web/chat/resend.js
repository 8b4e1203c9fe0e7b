// Messages that were refused: sent again after a sentence and a countdown, or left behind.
import { button, el, visible } from "./dom.js";

// A person waits no longer.
const MAX_WAIT_S = 120;

// Returns true when the message is to be sent again, and false if it would be refused again, or once the user presses Stop.
export async function waitToResend(chat, running, { status, message, headers }) {
  const { turn } = running;
  let left = Math.ceil(Number(headers.get("Retry-After")));
  if (![429, 503].includes(status) || headers.get("x-should-retry") === "false" || !(left > 0 && left <= MAX_WAIT_S)) return false;
  const rest = el("span", { class: "quiet" });
  const line = el("p", { class: "warn" }, el("span", { role: "alert" }, visible(message), " "), rest);
  return new Promise((resolve) => {
    const show = () => (rest.textContent = `Your message is sent again in ${left} s.`);
    const timer = setInterval(() => ((left -= 1) > 0 ? show() : end(true)), 1000);
    const end = (sends) => (clearInterval(timer), (running.giveUp = null), turn.outcome.replaceChildren(), resolve(sends));
    running.giveUp = () => end(false);
    show();
    turn.outcome.replaceChildren(line, button("Send now", () => end(true)));
    chat.liveRegion.announce(`${message} ${rest.textContent}`);
  });
}

// The input behind refused turns, which are not part of the conversation: their answers to calls are sent again.
export function afterRefused(turns, parent, input) {
  const refused = turns.slice(turns.indexOf(parent) + 1);
  for (const turn of refused) turn.outcome.querySelector("button")?.remove();
  return [...refused.at(-1).input.filter((item) => !item.role), ...input];
}
