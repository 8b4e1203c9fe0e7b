// One output item each, as it grows and as it is when done: text, reasoning, a call, or anything else.
import { Call } from "./call.js";
import { el, visible } from "./dom.js";
import { Growing, long } from "./growing.js";

const SUMMARY_LENGTH = 72;

class Message {
  constructor() {
    this.element = el("div", { class: "message" });
    this.parts = new Map();
  }

  hear(event) {
    if (!event.type.endsWith("output_text.delta") && event.type !== "response.refusal.delta") return;
    let part = this.parts.get(event.content_index);
    if (!part) {
      part = event.type === "response.refusal.delta" ? new Growing("div", { class: "plain", dir: "auto" }) : new StreamedText();
      this.parts.set(event.content_index, part);
      this.element.append(part.element);
    }
    part.append(event.delta);
  }

  // What was streamed in full stays as it is, so that nothing moves at the end.
  settle(item) {
    const settled = item.content.map((part, index) => (part.text !== undefined && this.parts.get(index)?.finish?.(part.text)) || partOf(part));
    if (settled.length !== this.element.children.length || settled.some((element, index) => element !== this.element.children[index])) this.element.replaceChildren(...settled);
  }
}

// The text of a part while it is streamed: plain until the module is here that reads Markdown.
class StreamedText {
  constructor() {
    this.text = "";
    this.shown = new Growing("div", { class: "plain", dir: "auto" });
    import("./markdown_stream.js").then(({ MarkdownStream }) => {
      const { element } = this.shown;
      this.shown = this.markdown = new MarkdownStream();
      this.shown.append(this.text);
      element.replaceWith(this.element);
    });
  }

  get element() {
    return this.shown.element;
  }

  append(text) {
    this.text += text;
    this.shown.append(text);
  }

  // The element with all of the text, or null where it cannot be kept.
  finish(text) {
    return this.markdown && text === this.text && this.markdown.finish() ? this.element : null;
  }
}

function partOf(part) {
  if (part.type === "refusal") return el("p", { class: "refusal", dir: "auto" }, part.refusal);
  return rendered(part.text ?? JSON.stringify(part));
}

// Markdown, as soon as the module that reads it is here; plain until then.
export function rendered(text) {
  const made = el("div", { class: "plain", dir: "auto" }, ...long(text));
  import("./markdown.js").then(({ markdown }) => made.replaceWith(markdown(text)));
  return made;
}

class Reasoning {
  constructor() {
    this.label = el("span", { class: "label" }, "Thinking");
    this.latest = el("span", { class: "latest", dir: "auto" });
    this.text = new Growing("div", { class: "plain", dir: "auto" });
    this.element = el("details", { class: "reasoning" }, el("summary", {}, this.label, this.latest), this.text.element);
    this.tail = "";
  }

  hear(event) {
    if (!event.type.startsWith("response.reasoning") || !event.type.endsWith(".delta")) return;
    this.text.append(event.delta);
    this.tail = (this.tail + event.delta).slice(-4 * SUMMARY_LENGTH);
    // The line that it is at, as far as it goes.
    this.latest.textContent = visible(this.tail.trimEnd().split("\n").at(-1)).slice(-SUMMARY_LENGTH);
  }

  settle(item) {
    const said = [...(item.summary ?? []), ...(item.content ?? [])].map((part) => part.text).join("\n\n");
    if (this.seconds === undefined) this.label.textContent = "Thought";
    this.latest.textContent = "";
    this.text.element.replaceChildren(...long(said || "Reasoning is encrypted."));
  }

  // How long it took, by the times of the log.
  took(seconds) {
    this.seconds = seconds;
    this.label.textContent = `Thought for ${duration(seconds)}`;
  }
}

function duration(seconds) {
  if (seconds < 0.1) return "less than 0.1 s";
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

class Other {
  constructor(item) {
    this.element = el("details", { class: "card" }, el("summary", {}, item.type.replaceAll("_", " ")));
  }

  hear() {}

  settle(item) {
    this.element.append(el("pre", { tabindex: "0", dir: "ltr" }, ...long(JSON.stringify(item, null, 2))));
  }
}

const KINDS = { message: Message, reasoning: Reasoning, function_call: Call, custom_tool_call: Call };

export const blockOf = (item) => new (KINDS[item.type] ?? Other)(item);
