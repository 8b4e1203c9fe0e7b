// Element construction: attributes, listeners and children. Strings become text nodes, never HTML.
import { visible } from "../visible.js";

export { visible };

// Attributes with text for users.
const TEXT_ATTRIBUTES = new Set(["alt", "aria-label", "placeholder", "title"]);

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : TEXT_ATTRIBUTES.has(name) ? visible(value) : value);
  }
  const nodes = children.flat().filter((child) => child !== null && child !== undefined);
  node.append(...nodes.map((child) => (typeof child === "string" ? visible(child) : child)));
  return node;
}

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);
