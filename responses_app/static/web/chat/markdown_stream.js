// Markdown that arrives in pieces: a finished block is rendered once, the open one again while it grows. The cost is linear in the text.
import { visible, visibleBehind } from "../visible.js";
import { LONGEST, container, parse } from "./markdown.js";

// An open block up to this length is rendered at every frame; a longer one when it has grown by an eighth, and grows as plain text between.
const SMALL = 2000;
const GROWTH = 1.125;

export class MarkdownStream {
  constructor() {
    this.element = container();
    this.length = 0;
    // The text of the open block and of what follows it, how much of that is on the page, and its length when it was rendered last.
    this.open = "";
    this.shown = 0;
    this.rendered = 0;
    this.nodes = [];
  }

  append(text) {
    this.length += text.length;
    // The rest is shown by `rendered` at the end, as plain text.
    if (this.length > LONGEST) return;
    this.open += text;
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  // Whether the page shows all of the text now.
  finish() {
    cancelAnimationFrame(this.frame);
    if (this.length > LONGEST) return false;
    this.render();
    return true;
  }

  draw() {
    this.frame = null;
    if (this.open.length <= SMALL || this.open.length >= this.rendered * GROWTH) this.render();
    else this.extend(this.open.slice(this.shown));
    this.shown = this.open.length;
  }

  extend(text) {
    let last = this.element;
    while (last.lastChild) last = last.lastChild;
    if (last.nodeType === Node.TEXT_NODE) last.appendData(visibleBehind(last.data, text));
    else last.append(visible(text));
  }

  render() {
    const lines = this.open.split("\n");
    const parsed = parse(visible(this.open).split("\n"));
    for (const node of this.nodes) node.remove();
    this.element.append(...parsed.map(([element]) => element));
    // Where a block ends is known once the line that ends it and the one behind are complete.
    const final = parsed.findLast(([, end]) => end + 2 < lines.length);
    this.nodes = parsed.slice(parsed.indexOf(final) + 1).map(([element]) => element);
    this.open = lines.slice(final?.[1] ?? 0).join("\n");
    this.rendered = this.shown = this.open.length;
  }
}
