// What a screen reader is told: that an answer has begun, and what it was; never every token of it.
import { visible } from "../visible.js";

const LONGEST = 600;

export class Speaker {
  constructor(element) {
    this.element = element;
  }

  say(text) {
    this.element.textContent = visible(text.length > LONGEST ? `${text.slice(0, LONGEST)}… (continued)` : text);
  }
}
