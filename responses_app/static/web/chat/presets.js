// Presets: instructions that the server keeps by name for the user.
import { button, el } from "./dom.js";

// Presets of an earlier version, which the server takes over.
const STORAGE_KEY = "chat-presets";

export async function openPresets(form, url) {
  const field = form.elements.instructions;
  let presets = {};
  const select = el("select", { "aria-label": "Preset" });
  const name = el("input", { "aria-label": "Name of the preset", placeholder: "Name", maxlength: 60 });
  const save = button("Save preset", () => (name.value.trim() ? change({ name: name.value.trim(), instructions: field.value }) : name.focus()));
  const remove = button("Delete preset", () => change({ name: select.value }).then(() => select.focus()));
  const problem = el("p", { class: "bad", role: "status" });

  function show(chosen) {
    select.replaceChildren(new Option("Presets…", ""), ...Object.keys(presets).map((one) => new Option(one, one, false, one === chosen)));
    name.value = chosen;
    remove.hidden = !chosen;
  }

  /** Sends a change, or none to fetch the presets. Returns whether the server answered. */
  async function change(values) {
    const before = name.value;
    const response = await (values ? post(url, values) : fetch(url)).catch(() => null);
    problem.textContent = response?.ok ? "" : response?.status === 400 ? await response.text() : "The presets can’t be reached.";
    if (!response?.ok) return false;
    presets = await response.json();
    const typed = name.value;
    show("instructions" in (values ?? {}) ? values.name : "");
    // A name that was typed while the server answered stays.
    if (typed !== before) name.value = typed;
    return true;
  }

  async function importStored() {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    for (const [one, instructions] of Object.entries(stored)) if (!(one in presets) && !(await change({ name: one, instructions }))) return;
    localStorage.removeItem(STORAGE_KEY);
    if (Object.keys(stored).length) show("");
  }

  select.addEventListener("change", () => {
    show(select.value);
    if (select.value) field.value = presets[select.value];
    // The settings save the changed field.
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  name.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), save.click()));
  show("");
  field.parentElement.after(el("div", { class: "row" }, select, name, save, remove), problem);
  if (await change()) await importStored();
}

const tokenOf = (page) => page.querySelector("[name=csrfmiddlewaretoken]");

async function post(url, values, isFirst = true) {
  const body = new FormData();
  for (const [key, value] of Object.entries(values)) body.set(key, value);
  body.set("csrfmiddlewaretoken", tokenOf(document).value);
  const response = await fetch(url, { method: "POST", body });
  if (response.status !== 403 || !isFirst) return response;
  // After a sign-in in another tab the page has an old token.
  const page = await (await fetch(location.pathname)).text();
  const token = tokenOf(new DOMParser().parseFromString(page, "text/html"));
  if (!token) return response;
  tokenOf(document).value = token.value;
  return post(url, values, false);
}
