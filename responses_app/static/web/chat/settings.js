// Request parameters of the form, saved for the next visit and filled from an opened conversation.
// An earlier form saved under "chat-settings".
const STORAGE_KEY = "chat-form";
const NAMES = ["model", "instructions", "temperature", "max_output_tokens", "effort", "tools", "by_itself", "servers", "offered", "store"];

export class Settings {
  constructor(form) {
    this.form = form;
    this.details = form.querySelector("details.settings");
    this.problem = form.querySelector(".problem");
    // Parameters of the opened conversation that have no control in the form.
    this.carried = {};
    this.restore();
    form.addEventListener("change", (event) => this.save(event.target.name));
    form.addEventListener("input", () => (this.problem.textContent = ""));
    form.addEventListener("invalid", (event) => this.showProblem(event), true);
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("pointerdown", ({ target }) => {
      if (!this.details.contains(target)) this.details.open = false;
    });
  }

  onKey(event) {
    if (event.key !== "Escape" || !this.details.open) return;
    // Esc closes the panel first. Only with a closed panel does Esc stop the response.
    event.preventDefault();
    this.details.open = false;
    this.details.querySelector("summary").focus();
  }

  // Shows the message of an invalid field, because the browser cannot show its own message in a closed panel.
  showProblem(event) {
    event.preventDefault();
    if (this.reporting) return;
    this.reporting = setTimeout(() => (this.reporting = null));
    const field = event.target;
    this.details.open = true;
    this.problem.textContent = `${field.labels[0].firstChild.data.trim()}: ${field.validationMessage}`;
    field.focus();
  }

  value(name) {
    return this.form.elements[name].value.trim();
  }

  // Fills the form from an opened conversation. Returns notes about parameters without a control.
  async load(model, parameters) {
    const field = this.form.elements.model;
    const served = [...field.options].some((option) => option.value === model);
    if (served) {
      field.value = model;
      field.dispatchEvent(new Event("change"));
    }
    const notes = served || !model ? [] : [`The model ${model} isn’t available. New messages go to ${field.value || "no model"}.`];
    if (Object.keys(parameters).length === 0) {
      this.fill({});
      return notes;
    }
    const { carryOver } = await import("./carried_parameters.js");
    return [...notes, ...(await carryOver(this, parameters))];
  }

  // Sets the controls. `carried` parameters are sent unchanged with every message.
  fill({ instructions, temperature, max_output_tokens, effort, tools = [], ...ofServer }, carried = {}) {
    for (const [name, value] of Object.entries({ instructions, temperature, max_output_tokens, effort })) this.form.elements[name].value = value ?? "";
    for (const box of this.form.querySelectorAll("[name=tools]")) box.checked = tools.includes(box.value);
    this.choose(ofServer);
    this.carried = carried;
    this.form.querySelector(".inherited").hidden = true;
  }

  // Sets the controls of the server tools. `store` is the id of a vector store.
  choose({ servers = [], offered = [], store = "" }) {
    for (const box of this.servers) box.checked = servers.includes(box.value);
    for (const box of this.offered) box.checked = offered.includes(box.value);
    if (this.form.elements.store) this.form.elements.store.value = store;
  }

  get tools() {
    return [...this.form.querySelectorAll("[name=tools]:checked")].map((box) => box.value);
  }

  // The checkboxes of the MCP servers.
  get servers() {
    return [...this.form.querySelectorAll("[name=servers]")];
  }

  // The checkboxes of the server tools.
  get offered() {
    return [...this.form.querySelectorAll("[name=offered]")];
  }

  get runsToolsAutomatically() {
    return this.form.elements.by_itself.checked;
  }

  save(name) {
    if (!NAMES.includes(name)) return;
    // Save only the changed field: the other values may come from the opened conversation.
    localStorage.setItem(STORAGE_KEY, JSON.stringify({ ...stored(), [name]: this.state(name) }));
  }

  state(name) {
    if (name === "tools") return this.tools;
    if (name === "servers") return this.servers.filter((box) => box.checked).map((box) => box.value);
    if (name === "offered") return this.offered.filter((box) => box.checked).map((box) => box.value);
    const field = this.form.elements[name];
    return field.type === "checkbox" ? field.checked : field.value;
  }

  restore() {
    const saved = stored();
    for (const box of this.form.querySelectorAll("[name=tools]")) box.checked = (saved.tools ?? []).includes(box.value);
    for (const box of this.servers) box.checked = (saved.servers ?? []).includes(box.value);
    for (const box of this.offered) box.checked = (saved.offered ?? []).includes(box.value);
    for (const name of NAMES.filter((field) => !["tools", "servers", "offered"].includes(field) && saved[field] !== undefined && this.form.elements[field])) {
      const field = this.form.elements[name];
      if (field.type === "checkbox") field.checked = saved[name];
      // Skip an option that no longer exists.
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === saved[name])) field.value = saved[name];
    }
  }
}

const stored = () => JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
