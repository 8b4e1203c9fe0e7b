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
      part = new Growing("div", { class: "plain", dir: "auto" });
      this.parts.set(event.content_index, part);
      this.element.append(part.element);
    }
    part.append(event.delta);
  }

  settle(item) {
    this.element.replaceChildren(...item.content.map(partOf));
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
    this.began = performance.now();
    this.tail = "";
    this.live = false;
  }

  hear(event) {
    if (!event.type.startsWith("response.reasoning") || !event.type.endsWith(".delta")) return;
    this.live = true;
    this.text.append(event.delta);
    this.tail = (this.tail + event.delta).slice(-4 * SUMMARY_LENGTH);
    // The line that it is at, as far as it goes.
    this.latest.textContent = visible(this.tail.trimEnd().split("\n").at(-1)).slice(-SUMMARY_LENGTH);
  }

  settle(item) {
    const said = [...(item.summary ?? []), ...(item.content ?? [])].map((part) => part.text).join("\n\n");
    const seconds = (performance.now() - this.began) / 1000;
    this.label.textContent = this.live ? `Thought for ${seconds.toFixed(1)} s` : "Thought";
    this.latest.textContent = "";
    this.text.element.replaceChildren(...long(said || "What it thought is sealed."));
  }
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
