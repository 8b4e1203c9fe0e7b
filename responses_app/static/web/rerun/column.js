// Column of a run: creates the responses of the run, shows their text while it streams, and swaps in the server's result.
import { TERMINAL, follow } from "../chat/follow.js";
import { el, visible } from "../chat/dom.js";
import { visibleAfter } from "../visible.js";
import { parseField } from "./editors.js";

// After this number of consecutive recorded answers the run stops, so that a loop of calls ends.
const MAX_ROUNDS = 16;

export class Column {
  constructor(element, page) {
    this.element = element;
    this.page = page;
    this.output = element.querySelector(".output");
    this.control = null;
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
    const live = new LiveOutput(this.output, round > 0);
    const stop = this.element.querySelector("[data-stop]");
    stop.hidden = false;
    this.last = start.id;
    try {
      for await (const event of follow(this.page.api, start, { signal: control.signal, onRetry: () => {} })) {
        if (event.type === "response.created") this.onCreated(event.response.id);
        live.apply(event);
        if (TERMINAL.has(event.type)) break;
      }
      await this.showResult(round, control.signal);
    } catch (error) {
      if (!control.signal.aborted) this.showError(error);
    } finally {
      if (this.control === control) stop.hidden = true;
    }
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
    this.output.replaceChildren(page.querySelector(".result"));
    const { next } = this.result.dataset;
    if (next && round < MAX_ROUNDS) await this.continueWith(JSON.parse(next), round + 1);
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
    const form = event.target;
    const input = [...form.querySelectorAll("[data-call]")].map(({ dataset: { call, type } }) => {
      const value = new FormData(form).get(call);
      return type === "mcp_approval_response" ? { type, approval_request_id: call, approve: value === "approve" } : { type, call_id: call, output: outputOf(type, value) };
    });
    await this.continueWith(input);
  }

  showError(error) {
    this.output.replaceChildren(el("div", { class: "block notice error", role: "alert" }, el("h2", {}, "The run did not start"), el("p", {}, error.message)));
    this.page.onError(error);
  }
}

// Functions and custom tools give texts, other tools JSON.
function outputOf(type, text) {
  if (["function_call_output", "custom_tool_call_output"].includes(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Text of a running response, with the time to the first token. `keeps` leaves what is shown in place. */
class LiveOutput {
  constructor(container, keeps) {
    this.start = performance.now();
    this.texts = new Map();
    this.first = el("dd", {}, "–");
    const figures = el("dl", { class: "figures" }, el("div", {}, el("dt", {}, "TTFT"), this.first));
    this.body = el("div", { class: "items live" });
    if (keeps) container.append(this.body);
    else container.replaceChildren(figures, this.body);
  }

  apply({ type, output_index, item, delta }) {
    if (type === "response.output_item.added") this.open(output_index, item);
    if (typeof delta !== "string") return;
    if (this.first.textContent === "–") this.first.textContent = `${((performance.now() - this.start) / 1000).toFixed(2)} s`;
    const text = this.texts.get(output_index);
    text?.append(visibleAfter(text.lastChild?.data ?? "", delta));
  }

  open(index, { type, role, name, server_label }) {
    const shape = ["message", "reasoning"].includes(type) ? type : "call";
    const title = [role ?? type, server_label, name].filter(Boolean).join(": ");
    const text = el("div", { class: shape === "call" ? "code mono" : "text", dir: "auto" });
    this.body.append(el("article", { class: `block ${shape}` }, el("h2", {}, visible(title)), text));
    this.texts.set(index, text);
  }
}
