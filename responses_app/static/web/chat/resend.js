// Requests that were refused for now: sent again after a sentence and a countdown, or left behind.
import { button, el, visible } from "./dom.js";

// A person waits no longer.
const MAX_WAIT_S = 120;

// Returns true when the request is to be sent again, and false if it would be refused again, or once the user presses Stop. `place` is
// the element for the sentence about the `subject`.
export async function waitToResend(running, { status, message, headers }, { place, subject, announce }) {
  let left = Math.ceil(Number(headers.get("Retry-After")));
  if (![429, 503].includes(status) || headers.get("x-should-retry") === "false" || !(left > 0 && left <= MAX_WAIT_S)) return false;
  const rest = el("span", { class: "quiet" });
  const line = el("p", { class: "warn" }, el("span", { role: "alert" }, visible(message), " "), rest);
  return new Promise((resolve) => {
    const show = () => (rest.textContent = `${subject} is sent again in ${left} s.`);
    const timer = setInterval(() => ((left -= 1) > 0 ? show() : end(true)), 1000);
    const { signal } = running.control;
    const giveUp = (running.giveUp = () => end(false));
    signal.addEventListener("abort", giveUp);
    const end = (sends) => {
      clearInterval(timer);
      signal.removeEventListener("abort", giveUp);
      running.giveUp = null;
      place.replaceChildren();
      resolve(sends);
    };
    show();
    place.replaceChildren(line, button("Send now", () => end(true)));
    announce(`${message} ${rest.textContent}`);
  });
}

/** Waits to send the message of a turn again. */
export const resendMessage = (chat, running, error) => waitToResend(running, error, { place: running.turn.outcome, subject: "Your message", announce: (text) => chat.liveRegion.announce(text) });

// The input behind refused turns, which are not part of the conversation: their answers to calls are sent again.
export function afterRefused(turns, parent, input) {
  const refused = turns.slice(turns.indexOf(parent) + 1);
  for (const turn of refused) turn.outcome.querySelector("button")?.remove();
  return [...refused.at(-1).input.filter((item) => !item.role), ...input];
}
