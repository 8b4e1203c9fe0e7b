// Output item that the model writes now: its text so far, and the state of a running call.
import { plain } from "./output_item.js";
import { visible, visibleAfter } from "./visible.js";

const SUMMARY_LENGTH = 72;
// Streamed characters that a page can lay out without a noticeable pause.
const MAX_SHOWN_CHARS = 50_000;

// A single text node, so that a delta costs an append and not a new layout of the whole text.
class GrowingText {
  constructor(element) {
    this.element = element;
    this.node = element.appendChild(document.createTextNode(""));
    this.length = 0;
  }

  append(text) {
    this.length += text.length;
    if (this.length <= MAX_SHOWN_CHARS) this.node.appendData(visibleAfter(this.node.data, text));
  }

  cite() {}

  finish() {}
}

// Streamed text of a part, with its citations: plain until the Markdown module is loaded.
class StreamedText {
  constructor(url) {
    this.steps = [];
    this.view = new GrowingText(plain());
    this.ready = import("./markdown/stream.js").then(({ MarkdownStream }) => {
      const { element } = this.view;
      this.view = new MarkdownStream(url);
      for (const [step, value] of this.steps) this.view[step](value);
      element.replaceWith(this.view.element);
    });
  }

  take(step, value) {
    this.steps.push([step, value]);
    this.view[step](value);
  }

  append(text) {
    this.take("append", text);
  }

  cite(annotation) {
    this.take("cite", annotation);
  }

  finish() {
    this.take("finish");
  }
}

/** Streams into `element`, the template of the shape `message`, `reasoning` or `call`. `url` is that of the item. */
export class StreamedItem {
  constructor(element, shape, url) {
    Object.assign(this, { element, shape, url, parts: new Map() });
    if (shape === "call") this.clock = import("./call_clock.js").then(({ CallClock }) => new CallClock(element));
  }

  apply(event) {
    this.clock?.then((clock) => clock.take(event.type));
    if (event.annotation) this.part(event.content_index).cite(event.annotation);
    if (typeof event.delta !== "string") return;
    if (this.shape === "message") this.part(event.content_index, event.type === "response.refusal.delta").append(event.delta);
    else if (this.shape === "call") (this.text ??= new GrowingText(this.element.querySelector("pre"))).append(event.delta);
    else this.think(event);
  }

  part(index, isRefusal) {
    if (!this.parts.has(index)) {
      const part = isRefusal ? new GrowingText(plain()) : new StreamedText(this.url);
      this.parts.set(index, part);
      this.element.append(part.view?.element ?? part.element);
    }
    return this.parts.get(index);
  }

  think(event) {
    // A summary may be a copy of the text that comes beside it.
    this.hasContent ||= "content_index" in event;
    if (this.hasContent && "summary_index" in event) return;
    this.text ??= new GrowingText(this.element.appendChild(plain()));
    this.text.append(event.delta);
    this.tail = ((this.tail ?? "") + event.delta).slice(-4 * SUMMARY_LENGTH);
    // The current line.
    this.element.querySelector(".latest").textContent = visible(this.tail.trimEnd().split("\n").at(-1)).slice(-SUMMARY_LENGTH);
  }

  async finish() {
    (await this.clock)?.stop();
    for (const part of this.parts.values()) part.finish();
    await Promise.all([...this.parts.values()].map((part) => part.ready));
  }
}
