// Column of a run: creates the responses of the run, shows their text while it streams, and swaps in the server's result.
import { el } from "../chat/dom.js";
import { parseField } from "./editors.js";

/** Colours the code and typesets the math of Markdown in `element`. */
export async function enhance(element) {
  if (element.querySelector(".markdown")) (await import("../markdown/enhance.js")).enhance(element);
}

// After this number of consecutive recorded answers the run stops, so that a loop of calls ends.
const MAX_ROUNDS = 16;

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
  }

  async follow(start, round = 0) {
    this.control?.abort();
    const control = (this.control = new AbortController());
    const { LiveOutput, TERMINAL, follow } = await import("./live.js");
    const live = new LiveOutput(this.output, this.page.urls.responses, round > 0);
    // Compared responses, and those that a person may only read, have no button.
    const stop = this.element.querySelector("[data-stop]") ?? {};
    stop.hidden = false;
    this.say("Running");
    const onRetry = (retries) => {
      live.showRetry(retries);
      this.say(retries ? "Connection lost" : "Running");
    };
    this.last = start.id;
    let isStarted = Boolean(start.id);
    try {
      for await (const event of follow(this.page.api, start, { signal: control.signal, onRetry })) {
        if (event.type === "response.created") this.onCreated(event.response.id);
        // The edits are stored with the run.
        if (start.body && !round && !isStarted) delete sessionStorage[location.pathname];
        isStarted = true;
        live.apply(event);
        if (TERMINAL.has(event.type)) break;
      }
      await this.showResult(round, control.signal);
    } catch (error) {
      if (!control.signal.aborted) this.showError(error, isStarted);
    } finally {
      if (this.control === control) (this.keepFocus(stop), (stop.hidden = true));
    }
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

  async showResult(round, signal) {
    const run = this.value;
    const query = new URLSearchParams({ run, place: this.element.dataset.pane, tools: this.page.mode });
    const response = await fetch(`${this.page.urls.result}?${query}`, { signal });
    if (!response.ok) throw new Error(`The server returned an error (HTTP ${response.status}).`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    this.keepFocus(this.output);
    this.output.replaceChildren(page.querySelector(".result"));
    enhance(this.output);
    const { next } = this.result.dataset;
    if (next && round < MAX_ROUNDS) await this.continueWith(JSON.parse(next), round + 1);
    else this.say(this.result.querySelector(".status").textContent);
  }

  // For screen readers, because the focus stays on the button that started the run.
  say(state) {
    this.element.querySelector("[data-said]").textContent = `${this.element.getAttribute("aria-label")}: ${state}`;
  }

  /** Answers the calls of the last response. */
  async continueWith(input, round = 1) {
    const { parameters, last, of } = this.result.dataset;
    const { tool_choice, ...body } = JSON.parse(parameters);
    // Behind a result, a forced call would be made again without end.
    const choice = ["auto", "none"].includes(tool_choice) ? { tool_choice } : {};
    this.uid = this.result.dataset.run;
    await this.follow({ body: this.page.asRun({ ...body, ...choice, previous_response_id: last, input }, of) }, round);
  }

  async onAnswers(event) {
    event.preventDefault();
    const { answersOf } = await import("./answers.js");
    await this.continueWith(answersOf(event.target));
  }

  showError(error, isStarted) {
    const title = isStarted ? "The run could not be shown" : "The run did not start";
    const remedy = isStarted ? " Reload the page to see how it ended." : "";
    this.output.replaceChildren(el("div", { class: "block notice error", role: "alert" }, el("h2", {}, title), el("p", {}, error.message + remedy)));
    // The alert is read by itself.
    this.element.querySelector("[data-said]").textContent = "";
    this.page.onError(error);
  }
}
