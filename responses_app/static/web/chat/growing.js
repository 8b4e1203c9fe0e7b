// Text that may be long: it grows by appending, and of very much of it a part is shown at first.
import { visibleBehind } from "../visible.js";
import { button, el, visible } from "./dom.js";

// What a page can lay out without stopping; the rest is a click away.
const SHOWN = 50_000;

// One node for all of it: a delta is an append and never a rewrite.
export class Growing {
  constructor(tag, attributes) {
    this.node = document.createTextNode("");
    this.element = el(tag, attributes, this.node);
    this.length = 0;
  }

  append(text) {
    this.length += text.length;
    if (this.length <= SHOWN) this.node.appendData(visibleBehind(this.node.data, text));
  }
}

// As much of a text as can be shown at once, and a button for the rest.
export function long(text) {
  if (text.length <= SHOWN) return [visible(text)];
  const rest = button(`Show ${(text.length - SHOWN).toLocaleString()} more characters`, () => rest.replaceWith(visible(text.slice(SHOWN))));
  return [visible(text.slice(0, SHOWN)), rest];
}
