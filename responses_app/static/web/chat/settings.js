// Request parameters of the form, saved for the next visit, or of an opened conversation.
const STORAGE_KEY = "chat-form";
const FIELDS = ["model", "instructions", "temperature", "max_output_tokens", "effort", "by_itself", "store"];
// Groups of checkboxes: tools of the page, MCP servers, server tools.
const LISTS = ["tools", "servers", "offered"];

export class Settings {
  constructor(form) {
    this.form = form;
    this.details = form.querySelector("details.settings");
    // Parameters of the opened conversation that have no control in the form.
    this.carried = {};
    this.menus = [...form.querySelectorAll("details.menu")];
    this.restore();
    form.addEventListener("change", (event) => (this.save(event.target.name), this.countTools()));
    form.addEventListener("input", () => (form.querySelector(".problem").textContent = ""));
    form.addEventListener("invalid", (event) => (event.preventDefault(), import("./invalid_setting.js").then(({ show }) => show(this))), true);
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("pointerdown", ({ target }) => {
      for (const menu of this.menus) if (!menu.contains(target)) menu.open = false;
    });
    this.details.addEventListener("toggle", async () => (await import("./presets.js")).openPresets(form, form.dataset.presets), { once: true });
  }

  onKey(event) {
    const menu = this.menus.find((one) => one.open);
    if (event.key !== "Escape" || !menu) return;
    // Esc closes the panel first. Only with a closed panel does Esc stop the response.
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  }

  value(name) {
    return this.form.elements[name].value.trim();
  }

  // Sets the controls of the server tools. `store` is the id of a vector store.
  choose({ servers, offered, store = "" }) {
    this.check("servers", servers);
    this.check("offered", offered);
    if (this.form.elements.store) this.form.elements.store.value = store;
    this.countTools();
  }

  // Shows the number of chosen tools beside the name of the menu.
  countTools() {
    const count = this.form.querySelectorAll(".tool-menu :checked:not([name=by_itself], option)").length + (this.form.elements.store?.value ? 1 : 0);
    this.form.querySelector(".tool-menu .count").textContent = count || "";
  }

  boxes(name) {
    return [...this.form.querySelectorAll(`[name=${name}]`)];
  }

  check(name, values = []) {
    for (const box of this.boxes(name)) box.checked = values.includes(box.value);
  }

  checked(name) {
    return this.boxes(name).filter((box) => box.checked).map((box) => box.value);
  }

  get tools() {
    return this.checked("tools");
  }

  get runsToolsAutomatically() {
    return this.form.elements.by_itself.checked;
  }

  save(name) {
    if (![...FIELDS, ...LISTS].includes(name)) return;
    // The other values may come from the opened conversation.
    localStorage.setItem(STORAGE_KEY, JSON.stringify({ ...stored(), [name]: this.state(name) }));
  }

  state(name) {
    if (LISTS.includes(name)) return this.checked(name);
    const field = this.form.elements[name];
    return field.type === "checkbox" ? field.checked : field.value;
  }

  restore() {
    const saved = stored();
    saved.model = new URLSearchParams(location.search).get("model") ?? saved.model;
    for (const name of LISTS) this.check(name, saved[name]);
    for (const name of FIELDS.filter((field) => saved[field] !== undefined && this.form.elements[field])) {
      const field = this.form.elements[name];
      if (field.type === "checkbox") field.checked = saved[name];
      // Skip an option that no longer exists.
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === saved[name])) field.value = saved[name];
    }
    this.countTools();
  }
}

const stored = () => JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
