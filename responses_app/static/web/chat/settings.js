// The request parameters of the form; remembered for the next visit, and taken over from the conversation that is opened.
const KEPT = "chat-settings";
const NAMES = ["model", "instructions", "temperature", "max_output_tokens", "effort", "tools", "by_itself"];

export class Settings {
  constructor(form) {
    this.form = form;
    this.details = form.querySelector("details.settings");
    this.problem = form.querySelector(".problem");
    // Parameters of the opened conversation that have no control in the form.
    this.carried = {};
    this.restore();
    form.addEventListener("change", (event) => this.keep(event.target.name));
    form.addEventListener("input", () => (this.problem.textContent = ""));
    form.addEventListener("invalid", (event) => this.explain(event), true);
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", ({ target }) => {
      if (!this.details.contains(target)) this.details.open = false;
    });
  }

  key(event) {
    if (event.key !== "Escape" || !this.details.open) return;
    // The same key stops an answer, but not as long as there is something to close.
    event.preventDefault();
    this.details.open = false;
    this.details.querySelector("summary").focus();
  }

  // A value that the browser refuses may stand in the closed panel, where it cannot show its own message.
  explain(event) {
    event.preventDefault();
    if (this.explaining) return;
    this.explaining = setTimeout(() => (this.explaining = null));
    const field = event.target;
    this.details.open = true;
    this.problem.textContent = `${field.labels[0].firstChild.data.trim()}: ${field.validationMessage}`;
    field.focus();
  }

  value(name) {
    return this.form.elements[name].value.trim();
  }

  // The model and the parameters of a conversation that is opened. Returns sentences about what the form does not show.
  async adopt(model, parameters) {
    const field = this.form.elements.model;
    const served = [...field.options].some((option) => option.value === model);
    if (served) {
      field.value = model;
      field.dispatchEvent(new Event("change"));
    }
    const said = served || !model ? [] : [`The model ${model} isn’t available. New messages go to ${field.value || "no model"}.`];
    if (Object.keys(parameters).length === 0) {
      this.fill({});
      return said;
    }
    const { inherit } = await import("./inherited.js");
    return [...said, ...inherit(this, parameters)];
  }

  // Sets the controls; `carried` is sent with every message as it is.
  fill({ instructions, temperature, max_output_tokens, effort, tools = [] }, carried = {}) {
    for (const [name, value] of Object.entries({ instructions, temperature, max_output_tokens, effort })) this.form.elements[name].value = value ?? "";
    for (const box of this.form.querySelectorAll("[name=tools]")) box.checked = tools.includes(box.value);
    this.carried = carried;
    this.form.querySelector(".inherited").hidden = true;
  }

  get tools() {
    return [...this.form.querySelectorAll("[name=tools]:checked")].map((box) => box.value);
  }

  get byItself() {
    return this.form.elements.by_itself.checked;
  }

  // The body of a create request: what is left empty is left to the model. `previous` says what it goes on from.
  async order(input, previous, metadata) {
    const tools = this.tools.length ? (await import("./tools.js")).declared(this.tools) : [];
    const number = (name) => (this.value(name) === "" ? undefined : Number(this.value(name)));
    const order = {
      model: this.value("model"),
      input,
      stream: true,
      store: true,
      // So that neither a reload nor a lost connection ends it.
      background: true,
      stream_options: { include_obfuscation: false },
      ...previous,
      instructions: this.value("instructions") || undefined,
      temperature: number("temperature"),
      max_output_tokens: number("max_output_tokens"),
      reasoning: this.value("effort") ? { effort: this.value("effort") } : undefined,
      tools: tools.length ? tools : undefined,
      metadata,
    };
    return Object.keys(this.carried).length ? (await import("./inherited.js")).completed(order, this.carried) : order;
  }

  keep(name) {
    if (!NAMES.includes(name)) return;
    // What a conversation brought along is not made the default by a change of something else.
    localStorage.setItem(KEPT, JSON.stringify({ ...stored(), [name]: this.state(name) }));
  }

  state(name) {
    if (name === "tools") return this.tools;
    const field = this.form.elements[name];
    return field.type === "checkbox" ? field.checked : field.value;
  }

  restore() {
    const kept = stored();
    for (const box of this.form.querySelectorAll("[name=tools]")) box.checked = (kept.tools ?? []).includes(box.value);
    for (const name of NAMES.filter((one) => one !== "tools" && kept[one] !== undefined)) {
      const field = this.form.elements[name];
      if (field.type === "checkbox") field.checked = kept[name];
      // What is no choice any more is not chosen.
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === kept[name])) field.value = kept[name];
    }
  }
}

const stored = () => JSON.parse(localStorage.getItem(KEPT) ?? "{}");
