// Editor for a sent message.
import { button, el } from "./dom.js";
import { textOf } from "./turn.js";

export async function openEditor(opener, input, send) {
  const article = opener.closest("article");
  const old = textOf([input.findLast((item) => item.role === "user")]);
  const field = el("textarea", { "aria-label": "Edited message", dir: "auto", rows: Math.min(12, old.split("\n").length + 1) });
  field.value = old;
  const files = await fileChoices(input);
  const close = () => (form.replaceWith(...original), opener.focus());
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) send(field.value, files.keeps);
  };
  const buttons = el("div", { class: "row" }, el("button", { class: "main" }, "Send"), button("Cancel", close));
  const form = el("form", { class: "editor", onsubmit: submit }, field, ...files.labels, buttons);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (event.stopPropagation(), close());
    if (event.key === "Enter" && event.target === field && !event.shiftKey && !event.isComposing) submit(event);
  });
  const original = [...article.childNodes];
  article.replaceChildren(form);
  field.focus();
}

async function fileChoices(input) {
  return input.some(({ content }) => content?.some?.((part) => part.type !== "input_text")) ? (await import("./kept_files.js")).choices(input) : { labels: [], keeps: () => false };
}
