// Editors of the request: reads the body of a create request, and names the place of a mistake in JSON.
import { button, el } from "../chat/dom.js";

export class EditorError extends Error {
  constructor(field, message, position = 0) {
    super(message);
    Object.assign(this, { field, position });
  }
}

/** Parses the JSON of a field. Throws EditorError with line and column. */
export function parseField(field, fallback) {
  const text = field.value;
  if (!text.trim()) return fallback;
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const position = placeOfMistake(text);
    const before = text.slice(0, position).split("\n");
    const reason = error.message.replace(/ in JSON.*| at position.*|, [".].*/s, "");
    throw new EditorError(field, `Line ${before.length}, column ${before.at(-1).length + 1}: ${reason}.`, position);
  }
  const kind = Array.isArray(value) ? "array" : typeof value;
  const expected = field.dataset.json ?? "object";
  if (kind !== expected || value === null) throw new EditorError(field, `This must be a JSON ${expected}.`);
  return value;
}

// The length of the longest beginning that could still become JSON. Browsers do not always name the place.
function placeOfMistake(text) {
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isBeginning(text.slice(0, middle))) low = middle;
    else high = middle - 1;
  }
  return low;
}

function isBeginning(text) {
  try {
    JSON.parse(text);
  } catch ({ message }) {
    return /end of JSON|end of data|Unterminated|EOF/.test(message) || Number(/position (\d+)/.exec(message)?.[1]) >= text.length;
  }
  return true;
}

export function showProblem({ field, message, position = 0 }) {
  clearProblems();
  const line = el("p", { class: "problem", role: "alert", id: "problem" }, message);
  field.closest("details")?.setAttribute("open", "");
  field.after(line);
  field.setAttribute("aria-describedby", "problem");
  field.setAttribute("aria-invalid", "true");
  if (!field.setSelectionRange) return;
  field.focus();
  field.setSelectionRange(position, position + 1);
}

export function clearProblems() {
  for (const line of document.querySelectorAll(".problem")) line.remove();
  for (const field of document.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

export class Editors {
  constructor(form, contextUrl) {
    this.form = form;
    this.list = form.querySelector("fieldset.items");
    this.note = form.querySelector("[data-note]");
    this.contextUrl = contextUrl;
    for (const item of this.items) if (!item.querySelector(".acts")) item.append(actionsOf("text" in item.dataset, item.querySelector("summary").textContent));
    for (const control of form.querySelectorAll("button")) control.disabled = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("click", ({ target }) => this.onClick(target));
  }

  get items() {
    return [...this.list.querySelectorAll("details.item")];
  }

  /** The number of items before the editors, which are not loaded. */
  get earlier() {
    return Number(this.list.dataset.earlier ?? 0);
  }

  onClick(target) {
    const item = target.closest("details.item");
    if (target.matches("[data-drop]")) this.drop(item);
    else if (target.matches("[data-as-json]")) editAsJson(item, target);
    else if (target.matches("[data-continue-own]")) for (const later of this.items.slice(this.items.indexOf(item) + 1)) later.remove();
    else if (target.matches("[data-continue]")) this.continueFrom(target.dataset.continue);
    else if (target.matches("[data-load]")) import("./context.js").then(({ load }) => load(this));
    else if (target.matches("[data-add-item]")) this.add({ title: this.unused("User"), json: JSON.stringify({ type: "message", role: "user", content: [{ type: "input_text", text: "" }] }), text: "", is_editable: true });
  }

  // The buttons of an item have names with its title.
  unused(title) {
    const taken = this.items.map((item) => item.querySelector("summary").textContent);
    let name = title;
    for (let number = 2; taken.includes(name); number += 1) name = `${title} (${number})`;
    return name;
  }

  drop(item) {
    const near = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    (near?.querySelector("summary") ?? document.querySelector("[data-add-item]")).focus();
  }

  async continueFrom(uid) {
    (await import("./context.js")).continueFrom(this, uid);
  }

  add({ title, json, text, is_editable }) {
    const field = is_editable ? el("textarea", { rows: "4", dir: "auto", "aria-label": title, ...(text === null ? { class: "mono", spellcheck: "false" } : {}) }) : el("p", { class: "quiet" }, "Too long to edit. It is sent as it is.");
    if (is_editable) field.defaultValue = text ?? json;
    const item = el("details", { class: "item", "data-item": json, "data-text": text !== null, open: true }, el("summary", { dir: "auto" }, title), field, actionsOf(text !== null, title));
    this.list.append(item);
    field.focus?.();
    return item;
  }

  async references() {
    const found = this.earlier ? await (await import("./context.js")).references(this) : [];
    if (!found) throw new EditorError(this.list.querySelector("[data-load]"), "The earlier items can’t be loaded. Try again.");
    return found;
  }

  /** The body of a create request without model. Throws EditorError. */
  async body() {
    const { elements } = this.form;
    const number = (name) => {
      const text = elements[name].value.trim();
      if (text && !Number.isFinite(Number(text))) throw new EditorError(elements[name], "This must be a number.");
      return text ? Number(text) : undefined;
    };
    const others = parseField(elements.others, {});
    const format = parseField(elements.format);
    const effort = elements.effort.value;
    const body = {
      ...others,
      instructions: elements.instructions.value || undefined,
      tools: parseField(elements.tools),
      text: format || others.text ? { ...others.text, format } : undefined,
      reasoning: effort || others.reasoning ? { ...others.reasoning, effort: effort || undefined } : undefined,
      temperature: number("temperature"),
      top_p: number("top_p"),
      max_output_tokens: number("max_output_tokens"),
      previous_response_id: this.list.dataset.previous || undefined,
      input: this.items.map(inputItem),
    };
    return this.earlier ? { ...body, input: [...(await this.references()), ...body.input] } : body;
  }

  /** The field of a path in an error of the API, such as `input[0].content`. */
  fieldOf(path = "") {
    const place = /^input\[(\d+)\]/.exec(path ?? "");
    if (place) return this.items[Number(place[1]) - this.earlier]?.querySelector("textarea") ?? null;
    const name = (path ?? "").split(/[.[]/)[0];
    return this.form.elements[{ text: "format", reasoning: "effort" }[name] ?? name] ?? null;
  }
}

function actionsOf(isText, title) {
  const action = (label, name) => button(label, null, { class: "plain", "aria-label": `${label}: ${title}`, [name]: true });
  return el("p", { class: "acts" }, isText ? action("Edit as JSON", "data-as-json") : null, " ", action("Continue from here", "data-continue-own"), " ", action("Remove", "data-drop"));
}

// The stored item. The page has what the editor shows once, as the first value of the editor.
export function originalOf(item, field) {
  const original = JSON.parse(item.dataset.item ?? field.defaultValue);
  if ("text" in item.dataset) original.content[0].text ??= field.defaultValue;
  return original;
}

// Shows a message as JSON, to change its role or its parts.
function editAsJson(item, control) {
  const field = item.querySelector("textarea");
  const shown = JSON.stringify(inputItem(item), null, 2);
  item.dataset.item = JSON.stringify(originalOf(item, field));
  field.value = shown;
  field.className = "mono";
  field.spellcheck = false;
  delete item.dataset.text;
  control.remove();
  field.focus();
}

// An edited item loses its id: the stored item would replace an item with the same id.
function inputItem(item) {
  const field = item.querySelector("textarea");
  const original = originalOf(item, field);
  if (!field) return original;
  if ("text" in item.dataset) {
    if (field.value === original.content[0].text) return original;
    const { id, ...edited } = original;
    return { ...edited, content: [{ ...original.content[0], text: field.value }] };
  }
  const edited = parseField(field, {});
  if (JSON.stringify(edited) !== JSON.stringify(original)) delete edited.id;
  return edited;
}
