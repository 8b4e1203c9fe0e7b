// Editor for a sent message.
import { button, el } from "./dom.js";

export function openEditor(opener, old, send) {
  const article = opener.closest("article");
  const field = el("textarea", { "aria-label": "Edited message", rows: Math.min(12, old.split("\n").length + 1) });
  field.value = old;
  const close = () => (form.replaceWith(...original), opener.focus());
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) send(field.value);
  };
  const form = el("form", { class: "editor", onsubmit: submit }, field, el("button", { class: "main" }, "Send"), button("Cancel", close));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (event.stopPropagation(), close());
    if (event.key === "Enter" && event.target === field && !event.shiftKey && !event.isComposing) submit(event);
  });
  const original = [...article.childNodes];
  article.replaceChildren(form);
  field.focus();
}
