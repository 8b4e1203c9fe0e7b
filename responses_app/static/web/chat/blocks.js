// Views of output items, during the stream and when done: message, reasoning, tool call, or any other item.
import { el, visible } from "./dom.js";
import { GrowingText, longText } from "./long_text.js";

const SUMMARY_LENGTH = 72;

class Message {
  constructor() {
    this.element = el("div", { class: "message" });
    this.parts = new Map();
  }

  apply(event) {
    if (!event.type.endsWith("output_text.delta") && event.type !== "response.refusal.delta") return;
    let part = this.parts.get(event.content_index);
    if (!part) {
      part = event.type === "response.refusal.delta" ? new GrowingText("div", { class: "plain", dir: "auto" }) : new StreamedText();
      this.parts.set(event.content_index, part);
      this.element.append(part.element);
    }
    part.append(event.delta);
  }

  // A fully streamed part keeps its element, so that the page does not jump.
  complete(item) {
    const elements = item.content.map((part, index) => (part.text !== undefined && !citesFiles(part) && this.parts.get(index)?.finish?.(part.text)) || partOf(part));
    if (elements.length !== this.element.children.length || elements.some((element, index) => element !== this.element.children[index])) this.element.replaceChildren(...elements);
  }
}

// Streamed text of a part: plain until the Markdown module is loaded.
class StreamedText {
  constructor() {
    this.text = "";
    this.view = new GrowingText("div", { class: "plain", dir: "auto" });
    import("../markdown/stream.js").then(({ MarkdownStream }) => {
      const { element } = this.view;
      this.view = this.markdown = new MarkdownStream();
      this.view.append(this.text);
      element.replaceWith(this.element);
    });
  }

  get element() {
    return this.view.element;
  }

  append(text) {
    this.text += text;
    this.view.append(text);
  }

  // Returns the element if it shows exactly `text`, otherwise null.
  finish(text) {
    return this.markdown && text === this.text && this.markdown.finish() ? this.element : null;
  }
}

function partOf(part) {
  if (part.type === "refusal") return el("p", { class: "refusal", dir: "auto" }, part.refusal);
  return rendered(part.text ?? JSON.stringify(part), citesFiles(part) ? part.annotations : []);
}

// A citation of a file is no link in the text itself, as a citation of a page is.
const citesFiles = (part) => Boolean(part.annotations?.some(({ type }) => type.endsWith("file_citation")));

// An element with `text` as Markdown, plain until the Markdown module is loaded.
export function rendered(text, citations = []) {
  const plain = el("div", { class: "plain", dir: "auto" }, ...longText(text));
  Promise.all([import("../markdown/markdown.js"), import("../markdown/enhance.js"), citations.length ? import("./citations.js") : null]).then(([{ markdown }, { enhance }, module]) => {
    const element = markdown(module ? module.withLinks(text, citations) : text);
    plain.replaceWith(element);
    enhance(element);
  });
  return plain;
}

class Reasoning {
  constructor() {
    this.label = el("span", { class: "label" }, "Thinking");
    this.latest = el("span", { class: "latest", dir: "auto" });
    this.text = new GrowingText("div", { class: "plain", dir: "auto" });
    this.element = el("details", { class: "reasoning" }, el("summary", {}, this.label, this.latest), this.text.element);
    this.tail = "";
  }

  apply(event) {
    if (!event.type.startsWith("response.reasoning") || !event.type.endsWith(".delta")) return;
    // A summary may be a copy of the text that comes beside it.
    this.hasContent ||= "content_index" in event;
    if (this.hasContent && "summary_index" in event) return;
    this.text.append(event.delta);
    this.tail = (this.tail + event.delta).slice(-4 * SUMMARY_LENGTH);
    // The current line.
    this.latest.textContent = visible(this.tail.trimEnd().split("\n").at(-1)).slice(-SUMMARY_LENGTH);
  }

  complete(item) {
    const parts = item.content?.length ? item.content : (item.summary ?? []);
    const text = parts.map((part) => part.text).join("\n\n");
    if (this.seconds === undefined) this.label.textContent = "Thought";
    this.latest.textContent = "";
    this.text.element.replaceChildren(...longText(text || "Reasoning is encrypted."));
  }

  // Sets the duration, measured by the server.
  setDuration(seconds) {
    this.seconds = seconds;
    this.label.textContent = `Thought for ${formatDuration(seconds)}`;
  }
}

function formatDuration(seconds) {
  if (seconds < 0.1) return "less than 0.1 s";
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

class OtherItem {
  constructor(item) {
    this.element = el("details", { class: "card" }, el("summary", {}, item.type.replaceAll("_", " ")));
  }

  apply() {}

  complete(item) {
    this.element.append(el("pre", { tabindex: "0", dir: "ltr" }, ...longText(JSON.stringify(item, null, 2))));
  }
}

const CALL_KINDS = ["function_call", "custom_tool_call"];
const KINDS = { message: Message, reasoning: Reasoning };

// Loads the module of the cards that `items` need. Required before `blockOf`.
export async function loadBlocks(items) {
  if (items.some((item) => CALL_KINDS.includes(item.type))) {
    const { Call } = await import("./call.js");
    for (const kind of CALL_KINDS) KINDS[kind] = Call;
  }
  if (items.some((item) => item.type === "code_interpreter_call")) KINDS.code_interpreter_call = (await import("./code_call.js")).CodeCall;
  if (items.some((item) => item.type.endsWith("_search_call"))) Object.assign(KINDS, (await import("./search_call.js")).SEARCH_KINDS);
  if (items.some((item) => item.type.startsWith("mcp_"))) Object.assign(KINDS, (await import("./mcp.js")).MCP_KINDS);
}

export const blockOf = (item) => new (KINDS[item.type] ?? OtherItem)(item);
