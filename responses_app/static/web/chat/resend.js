// Wait before a message that was refused for now is sent again: a sentence, a countdown and a button.
import { button, el, visible } from "./dom.js";

// Rejects with the error when the user presses Stop.
export function waitToResend(chat, running, error) {
  const { turn } = running;
  const rest = el("span", { class: "quiet" });
  const line = el("p", { class: "warn" }, el("span", { role: "alert" }, visible(error.message), " "), rest);
  let left = Math.ceil(error.retryAfter);
  return new Promise((resolve, reject) => {
    const show = () => (rest.textContent = `Your message is sent again in ${left} s.`);
    const timer = setInterval(() => ((left -= 1) > 0 ? show() : end(resolve)), 1000);
    const end = (settle) => (clearInterval(timer), (running.giveUp = null), turn.outcome.replaceChildren(), settle(error));
    running.giveUp = () => end(reject);
    show();
    turn.outcome.replaceChildren(line, button("Send now", () => end(resolve)));
    chat.liveRegion.announce(`${error.message} ${rest.textContent}`);
  });
}
