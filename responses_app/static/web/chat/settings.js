// What is asked of the model besides the text, as the form says it; remembered for the next visit.
const KEPT = "chat-settings";
const NAMES = ["model", "instructions", "temperature", "max_output_tokens", "effort", "tools", "by_itself"];

export class Settings {
  constructor(form) {
    this.form = form;
    this.restore();
    form.addEventListener("change", () => this.keep());
  }

  value(name) {
    return this.form.elements[name].value.trim();
  }

  // A thread goes on with the model that it was begun with, if that is still served.
  choose(model) {
    const field = this.form.elements.model;
    if (![...field.options].some((option) => option.value === model)) return;
    field.value = model;
    field.dispatchEvent(new Event("change"));
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
    return {
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
  }

  keep() {
    const kept = Object.fromEntries(NAMES.map((name) => [name, this.state(name)]));
    localStorage.setItem(KEPT, JSON.stringify(kept));
  }

  state(name) {
    if (name === "tools") return this.tools;
    const field = this.form.elements[name];
    return field.type === "checkbox" ? field.checked : field.value;
  }

  restore() {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    for (const box of this.form.querySelectorAll("[name=tools]")) box.checked = (kept.tools ?? []).includes(box.value);
    for (const name of NAMES.filter((one) => one !== "tools" && kept[one] !== undefined)) {
      const field = this.form.elements[name];
      if (field.type === "checkbox") field.checked = kept[name];
      // What is no choice any more is not chosen.
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === kept[name])) field.value = kept[name];
    }
  }
}
