// ARIA live region: announces start, end and problems of a response, but not each token.
import { visible } from "../visible.js";

const MAX_CHARS = 600;

export class LiveRegion {
  constructor(element) {
    this.element = element;
  }

  announce(text) {
    this.element.textContent = visible(text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}… (continued)` : text);
  }
}
