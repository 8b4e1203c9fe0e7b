// Streamed Markdown: finished blocks are rendered once, the open block repeatedly. The cost is linear in the text.
import { visible, visibleAfter } from "../visible.js";
import { MAX_CHARS, container, parse } from "./markdown.js";

// An open block up to this length is rendered in every frame. A longer block is rendered after growth by an eighth, as plain text between.
const SMALL_BLOCK_CHARS = 2000;
const GROWTH = 1.125;

export class MarkdownStream {
  constructor() {
    this.element = container();
    this.length = 0;
    // The text from the open block on, its length on the page, and its length at the last rendering.
    this.open = "";
    this.shown = 0;
    this.rendered = 0;
    this.nodes = [];
  }

  append(text) {
    this.length += text.length;
    // At the end `rendered` in blocks.js shows longer texts, as plain text.
    if (this.length > MAX_CHARS) return;
    this.open += text;
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  // Returns true if the element shows all of the text.
  finish() {
    cancelAnimationFrame(this.frame);
    if (this.length > MAX_CHARS) return false;
    this.render();
    return true;
  }

  draw() {
    this.frame = null;
    if (this.open.length <= SMALL_BLOCK_CHARS || this.open.length >= this.rendered * GROWTH) this.render();
    else this.extend(this.open.slice(this.shown));
    this.shown = this.open.length;
  }

  extend(text) {
    let last = this.element;
    while (last.lastChild) last = last.lastChild;
    if (last.nodeType === Node.TEXT_NODE) last.appendData(visibleAfter(last.data, text));
    else last.append(visible(text));
  }

  render() {
    const lines = this.open.split("\n");
    const parsed = parse(visible(this.open).split("\n"));
    for (const node of this.nodes) node.remove();
    this.element.append(...parsed.map(([element]) => element));
    // The end of a block is certain once the next two lines are complete.
    const final = parsed.findLast(([, end]) => end + 2 < lines.length);
    this.nodes = parsed.slice(parsed.indexOf(final) + 1).map(([element]) => element);
    this.open = lines.slice(final?.[1] ?? 0).join("\n");
    this.rendered = this.shown = this.open.length;
  }
}
