// Long text: a text node for streamed deltas, and a button for the part above the display limit.
import { visibleAfter } from "../visible.js";
import { button, el, visible } from "./dom.js";

// Characters that a page can lay out without a noticeable pause.
const MAX_SHOWN_CHARS = 50_000;

// A single text node, so that a delta costs an append and not a new layout of the whole text.
export class GrowingText {
  constructor(tag, attributes) {
    this.node = document.createTextNode("");
    this.element = el(tag, attributes, this.node);
    this.length = 0;
  }

  append(text) {
    this.length += text.length;
    if (this.length <= MAX_SHOWN_CHARS) this.node.appendData(visibleAfter(this.node.data, text));
  }
}

// Nodes for a text: the first characters, and a button for the rest.
export function longText(text) {
  if (text.length <= MAX_SHOWN_CHARS) return [visible(text)];
  const moreButton = button(`Show ${(text.length - MAX_SHOWN_CHARS).toLocaleString()} more characters`, () => moreButton.replaceWith(visible(text.slice(MAX_SHOWN_CHARS))));
  return [visible(text.slice(0, MAX_SHOWN_CHARS)), moreButton];
}
