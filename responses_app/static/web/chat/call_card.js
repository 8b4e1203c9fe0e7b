// Card of a call that the server runs: arguments or code as the model writes them, the time of the run, and the result.
import { el } from "./dom.js";
import { GrowingText, longText } from "./long_text.js";

const TICK_MS = 1000;
// Longer results are folded.
const MAX_OPEN_CHARS = 600;
const MAX_OPEN_LINES = 12;
const IMAGE_URL = /^data:image\/(png|jpeg|webp|gif);base64,/;
const STATES = { completed: "Done", failed: "Failed", incomplete: "Cut off" };

export class CallCard {
  // `name` is shown, `label` names the card and `textLabel` the text that the model writes.
  constructor(name, label, textLabel) {
    this.state = el("span", { class: "state" }, `Writing ${textLabel.toLowerCase()}…`);
    this.text = new GrowingText("pre", { tabindex: "0", dir: "ltr", role: "region", "aria-label": textLabel });
    this.output = el("div", { class: "output" });
    this.name = el("code", {}, name);
    const head = el("div", { class: "head" }, this.name, this.state);
    this.element = el("section", { class: "card call", "aria-label": label }, head, this.text.element, this.output);
  }

  setText(text) {
    this.text.element.replaceChildren(...longText(text));
  }

  // Shows the seconds from now on.
  start() {
    if (!this.started) this.count("Running…");
  }

  // Shows `state` with the seconds since now. Another state begins again.
  count(state) {
    clearInterval(this.timer);
    this.started = performance.now();
    this.state.textContent = state;
    this.timer = setInterval(() => {
      if (!this.element.isConnected) return clearInterval(this.timer);
      this.state.textContent = `${state} ${Math.round((performance.now() - this.started) / 1000)} s`;
    }, TICK_MS);
  }

  finish(status) {
    clearInterval(this.timer);
    const state = STATES[status] ?? "Done";
    this.state.textContent = this.started ? `${state} after ${((performance.now() - this.started) / 1000).toFixed(1)} s` : state;
  }

  showResult(...elements) {
    if (elements.length) this.output.replaceChildren(el("span", { class: "quiet" }, "Result"), ...elements);
  }
}

// An image element for a data URL of a type that browsers show, otherwise null.
export function imageOf(url) {
  return IMAGE_URL.test(url) ? el("img", { src: url, alt: "Image of the result", loading: "lazy" }) : null;
}

export function folded(text) {
  const box = el("pre", { tabindex: "0", dir: "auto", role: "region", "aria-label": "Result" }, ...longText(text));
  if (text.length <= MAX_OPEN_CHARS && text.split("\n").length <= MAX_OPEN_LINES) return box;
  return el("details", {}, el("summary", {}, `Show ${text.length.toLocaleString("en")} characters`), box);
}
