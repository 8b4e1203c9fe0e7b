// Presets: instructions that are saved by name in this browser.
import { button, el } from "./dom.js";

const STORAGE_KEY = "chat-presets";

const stored = () => JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");

export function openPresets(form) {
  const field = form.elements.instructions;
  const select = el("select", { "aria-label": "Preset" });
  const name = el("input", { "aria-label": "Name of the preset", placeholder: "Name", maxlength: 60 });
  const save = button("Save preset", () => (name.value.trim() ? change({ ...stored(), [name.value.trim()]: field.value }, name.value.trim()) : name.focus()));
  const remove = button("Delete preset", () => {
    const { [select.value]: _, ...others } = stored();
    change(others, "");
  });

  function show(chosen) {
    const names = Object.keys(stored()).sort();
    select.replaceChildren(new Option("Presets…", ""), ...names.map((one) => new Option(one, one, false, one === chosen)));
    name.value = chosen;
    remove.hidden = !chosen;
  }

  function change(presets, chosen) {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(presets));
    show(chosen);
  }

  select.addEventListener("change", () => {
    show(select.value);
    if (select.value) field.value = stored()[select.value];
    // The settings save the changed field.
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  name.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), save.click()));
  field.parentElement.after(el("div", { class: "row" }, select, name, save, remove));
  show("");
}
