// Elements in one call: attributes are set, strings become text, handlers listeners; nothing is ever parsed as HTML.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);

// Control characters, of which a terminal's escapes are made, as the pictures that Unicode has for them.
export const visible = (text) =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (sign) =>
    sign === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + sign.charCodeAt(0)),
  );
