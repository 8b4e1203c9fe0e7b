// Edits that were not run, for a reload: the texts of the editors and of the columns, in the storage of the tab.
import { button, el } from "../chat/dom.js";
import { showEarlier } from "./context.js";
import { originalOf } from "./editors.js";

const NAMES = ["instructions", "tools", "format", "temperature", "top_p", "max_output_tokens", "effort", "others"];
// Credentials of MCP servers are not stored.
const SECRET = /"(authorization|headers)"\s*:/;

const withoutSecrets = (value) => (SECRET.test(value) ? undefined : value);

function itemState(item) {
  const field = item.querySelector("textarea");
  const original = originalOf(item, field);
  const text = "text" in item.dataset ? original.content[0].text : null;
  return { title: item.querySelector("summary").textContent, json: JSON.stringify(original), text, is_editable: Boolean(field), value: field?.value, open: item.open };
}

export function save({ editors, runs }) {
  const { elements } = editors.form;
  const state = {
    values: NAMES.map((name) => withoutSecrets(elements[name].value)),
    list: { ...editors.list.dataset },
    items: editors.items.map(itemState),
    variants: runs.map(({ element }) => ["model", "changes"].map((name) => withoutSecrets(element.querySelector(`[name=${name}]`).value))),
  };
  try {
    sessionStorage[location.pathname] = JSON.stringify(state);
  } catch {
    // The storage is full: the edits stay until the page is left.
  }
}

export function restore({ editors, runs, toolbar }) {
  const { values, list, items, variants } = JSON.parse(sessionStorage[location.pathname]);
  NAMES.forEach((name, place) => (editors.form.elements[name].value = values[place] ?? editors.form.elements[name].value));
  Object.assign(editors.list.dataset, list);
  for (const item of editors.items) item.remove();
  const { scrollY } = window;
  for (const { value, open, ...item } of items) {
    editors.add(item);
    const element = editors.items.at(-1);
    if (item.is_editable) element.querySelector("textarea").value = value;
    element.open = open;
  }
  showEarlier(editors, editors.earlier);
  document.activeElement.blur();
  scrollTo({ top: scrollY, behavior: "instant" });
  variants.forEach((variant, place) => ["model", "changes"].forEach((name, at) => setField(runs[place]?.element.querySelector(`[name=${name}]`), variant[at])));
  showNotice(editors.form, toolbar);
}

function setField(field, value) {
  if (!field || value === undefined || field.value === value) return;
  // A model that is no longer served is no option.
  if (field.options && ![...field.options].some((option) => option.value === value)) return;
  field.value = value;
  field.closest("details")?.setAttribute("open", "");
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

function showNotice(form, toolbar) {
  const discard = () => (sessionStorage.removeItem(location.pathname), location.reload());
  const notice = el("p", { class: "quiet", role: "status" }, "These edits were not run. ", button("Discard edits", discard, { class: "plain" }));
  form.prepend(notice);
  toolbar.addEventListener("submit", () => notice.remove(), { once: true });
}
