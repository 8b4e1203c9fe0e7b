// Column of a run: its model, its changed fields and its output.
import { button, el } from "../chat/dom.js";
import { parseField } from "./editors.js";

/** Colours the code and typesets the math of Markdown in `element`. */
export async function enhance(element) {
  if (element.querySelector(".markdown")) (await import("../markdown/enhance.js")).enhance(element);
}

const AWAY = new Error("Can’t reach the server.");

export class Column {
  constructor(element, page) {
    this.element = element;
    this.page = page;
    this.output = element.querySelector(".output");
    this.control = null;
    element.tabIndex = -1;
    for (const control of element.querySelectorAll("[data-remove], [data-continue]")) control.disabled = false;
    element.querySelector("[data-remove]")?.addEventListener("click", () => page.remove(this));
    element.querySelector("[data-stop]")?.addEventListener("click", () => this.stop());
    this.output.addEventListener("submit", (event) => this.onAnswers(event));
    if (this.result && "running" in this.result.dataset) this.follow({ id: this.result.dataset.last });
  }

  get result() {
    return this.output.querySelector(".result");
  }

  get model() {
    return this.element.querySelector("select[name=model]").value;
  }

  /** The value of the column in the address: the id of the run, or the model and the changed fields. */
  get value() {
    if (this.uid ?? this.element.dataset.fixed) return this.uid ?? this.element.dataset.fixed;
    if (this.result) return this.result.dataset.run;
    return `${this.model} ${this.element.querySelector("[name=changes]").value.trim()}`.trim();
  }

  /** The body of the first request of the run. Throws EditorError. */
  body(shared) {
    const changes = parseField(this.element.querySelector("[name=changes]"), {});
    const body = { ...shared, model: this.model, ...changes };
    return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== undefined));
  }

  async run(body) {
    this.uid = null;
    await this.follow({ body: this.page.asRun(body, this.page.uid) });
  }

  async stop() {
    if (this.last) await this.page.api.cancel(this.last).catch(() => {});
    else this.giveUp?.();
  }

  // Modules for requests are loaded with the first run.
  async follow(start, round = 0) {
    this.control?.abort();
    const control = (this.control = new AbortController());
    const module = await import("./run.js").catch(() => null);
    if (module) await module.follow(this, control, start, round);
    else this.showError(AWAY, start, round);
  }

  // The focus of a control that goes moves to the column.
  keepFocus(part) {
    if (part.contains?.(document.activeElement)) this.element.focus({ preventScroll: true });
  }

  onCreated(id) {
    this.last = id;
    this.uid ??= this.result?.dataset.run ?? id;
    this.page.updateUrl();
  }

  // For screen readers, because the focus stays on the button that started the run.
  say(state) {
    this.element.querySelector("[data-said]").textContent = `${this.element.getAttribute("aria-label")}: ${state}`;
  }

  async onAnswers(event) {
    event.preventDefault();
    const modules = await Promise.all([import("./answers.js"), import("./run.js")]).catch(() => null);
    if (!modules) return this.showError(AWAY, {}, null);
    const [{ answersOf }, { continueWith }] = modules;
    await continueWith(this, answersOf(event.target));
  }

  // A problem of the request `start`, with a button to send it again unless `round` is null. The result of earlier rounds stays.
  showError({ message }, start, round) {
    const again = round === null ? null : button("Try again", () => (this.keepFocus(this.output), notice.remove(), this.follow(start, round)));
    const title = start.id ? "The run could not be shown" : "The run did not start";
    const notice = el("div", { class: "block notice error", role: "alert" }, el("h2", {}, title), el("p", {}, message), again);
    this.output.querySelector(".items.live")?.remove();
    if (this.result) this.output.append(notice);
    else this.output.replaceChildren(notice);
    // The alert is read by itself.
    this.element.querySelector("[data-said]").textContent = "";
  }
}
