// Card of a tool call: streamed arguments, then the output.
import { el, visible } from "./dom.js";
import { GrowingText, longText } from "./long_text.js";

export class Call {
  constructor(item) {
    this.item = item;
    this.state = el("span", { class: "state" }, "Calling…");
    this.arguments = new GrowingText("pre", { tabindex: "0", dir: "ltr", role: "region", "aria-label": "Arguments" });
    this.output = el("div", { class: "output" });
    const head = el("div", { class: "head" }, el("code", {}, visible(item.name)), this.state);
    this.element = el("section", { class: "card call", "aria-label": `Call to ${visible(item.name)}` }, head, this.arguments.element, this.output);
    this.answered = false;
  }

  apply(event) {
    if (!event.type.endsWith("_arguments.delta") && !event.type.endsWith("_input.delta")) return;
    this.arguments.append(event.delta);
    this.state.textContent = `Calling… ${this.arguments.length.toLocaleString()} characters`;
  }

  complete(item) {
    this.item = item;
    this.arguments.element.replaceChildren(...longText(pretty(item.arguments ?? item.input)));
    this.state.textContent = this.open ? "Waiting for result" : item.status === "incomplete" ? "Cut off" : "Done";
  }

  // True while the call needs an output. An incomplete call never does.
  get open() {
    return !this.answered && this.item.status !== "incomplete" && this.item.call_id !== undefined;
  }

  answers(item) {
    return item.type === `${this.item.type}_output` && item.call_id === this.item.call_id;
  }

  // `output` is an input item, or the content of one.
  answer(item) {
    const output = item.output ?? item;
    this.answered = true;
    this.state.textContent = "Done";
    const text = typeof output === "string" ? output : JSON.stringify(output, null, 2);
    this.output.replaceChildren(el("span", { class: "quiet" }, "Result"), el("pre", { tabindex: "0", dir: "auto", role: "region", "aria-label": "Result" }, ...longText(text)));
  }

  outputOf(text) {
    return { type: `${this.item.type}_output`, call_id: this.item.call_id, output: text };
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text ?? "";
  }
}
