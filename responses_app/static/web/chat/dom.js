// Elements in one call: attributes are set, strings become text, handlers listeners; nothing is ever parsed as HTML.
import { visible } from "../visible.js";

export { visible };

// Attributes that people read or hear.
const READ = new Set(["alt", "aria-label", "placeholder", "title"]);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : READ.has(name) ? visible(value) : value);
  }
  const shown = children.flat().filter((child) => child !== null && child !== undefined);
  made.append(...shown.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);
