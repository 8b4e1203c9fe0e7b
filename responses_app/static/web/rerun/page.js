// Edit and rerun: reads the editors, runs all columns at once, and keeps everything in the address.
import { backLink } from "../back.js";
import { Api } from "../chat/protocol.js";
import { keyboard } from "../keyboard.js";
import { Column, enhance } from "./column.js";
import { Editors, EditorError, clearProblems, showProblem } from "./editors.js";

class RerunPage {
  constructor(root) {
    this.root = root;
    this.urls = root.dataset;
    this.uid = root.dataset.uid;
    this.api = new Api(root.dataset.api, root.dataset.secret);
    this.toolbar = document.getElementById("toolbar");
    this.editors = new Editors(root.querySelector("form.editors"), root.dataset.context);
    this.columns = [...root.querySelectorAll(".column:not([data-pane='0'])")].map((element) => new Column(element, this));
    this.toolbar.addEventListener("submit", (event) => (event.preventDefault(), this.run()));
    this.toolbar.addEventListener("change", () => this.updateUrl());
    this.toolbar.querySelector("[data-add]").addEventListener("click", () => this.add());
    root.addEventListener("change", ({ target }) => target.matches("[name=model], [name=changes]") && this.onVariant(target));
    const original = root.querySelector(".column[data-pane='0']");
    for (const control of original.querySelectorAll("[data-continue]")) control.disabled = false;
    original.addEventListener("click", ({ target }) => target.matches("[data-continue]") && this.editors.continueFrom(target.dataset.continue));
    for (const control of this.toolbar.querySelectorAll("button")) control.disabled = false;
    this.enableAdding();
    const edits = (act) => import("./edits.js").then((module) => module[act](this));
    if (sessionStorage[location.pathname]) edits("restore");
    root.addEventListener("input", ({ target }) => target.closest(".editors, .variant") && edits("save"));
    // Earlier items that are shown are no edit.
    const isEdit = (item) => item.matches?.("details") && !(item.isConnected && "loaded" in item.dataset);
    new MutationObserver((changes) => changes.some(({ addedNodes, removedNodes }) => [...addedNodes, ...removedNodes].some(isEdit)) && edits("save")).observe(this.editors.list, { childList: true });
  }

  get mode() {
    return this.toolbar.elements.tools.value;
  }

  get runs() {
    return this.columns.filter((column) => !column.element.dataset.fixed);
  }

  async run() {
    clearProblems();
    // Responses that are only compared cannot run.
    if (!this.runs.length && this.columns.length < Number(this.urls.max)) this.add();
    try {
      const shared = await this.editors.body();
      const bodies = this.runs.map((column) => column.body(shared));
      // Streams of all columns begin at once.
      this.runs.forEach((column, place) => column.run(bodies[place]));
    } catch (error) {
      if (!(error instanceof EditorError)) throw error;
      this.select("request");
      showProblem(error);
    }
  }

  /** The body of a run: stored, in the background, and linked to the response whose request it repeats. */
  asRun(body, of) {
    const tools = this.mode === "ask" ? body.tools?.map((tool) => (tool.type === "mcp" ? { ...tool, require_approval: "always" } : tool)) : body.tools;
    return { ...body, tools, rerun: { of, tools: this.mode }, stream: true, store: true, background: true, stream_options: { include_obfuscation: false } };
  }

  // A run with another model or other fields is another run.
  onVariant(target) {
    const column = this.columns.find(({ element }) => element.contains(target));
    if (column) column.uid = null;
  }

  add() {
    const last = this.runs.at(-1)?.element;
    const element = this.root.querySelector("template:not([data-shape])").content.firstElementChild.cloneNode(true);
    if (last) for (const name of ["model", "changes"]) element.querySelector(`[name=${name}]`).value = last.querySelector(`[name=${name}]`).value;
    this.root.querySelector(".columns").append(element);
    this.columns.push(new Column(element, this));
    this.renumber();
    this.select(String(this.columns.length));
    this.updateUrl();
  }

  remove(column) {
    column.control?.abort();
    this.columns = this.columns.filter((other) => other !== column);
    column.element.remove();
    this.renumber();
    this.toolbar.querySelector("[data-add]").focus();
    this.select("0");
    this.updateUrl();
  }

  // Numbers the columns, compared responses apart from runs, and makes a tab for each.
  renumber() {
    const tabs = this.root.querySelector(".panes");
    const pattern = tabs.querySelector("label");
    for (const tab of [...tabs.querySelectorAll("label")].slice(2)) tab.remove();
    let [responses, runs] = [1, 0];
    this.columns.forEach(({ element }, index) => {
      const name = element.dataset.fixed ? `Response ${++responses}` : `Run ${++runs}`;
      element.dataset.pane = index + 1;
      element.setAttribute("aria-label", name);
      for (const part of element.querySelectorAll(".variant h2, .name")) part.textContent = name;
      const changes = element.querySelector("[name=changes]");
      if (changes) changes.id = changes.previousElementSibling.htmlFor = `changes-${index + 1}`;
      const tab = pattern.cloneNode(true);
      Object.assign(tab.querySelector("input"), { value: index + 1, checked: false });
      tab.lastChild.data = name;
      tabs.append(tab);
    });
    this.enableAdding();
  }

  select(pane) {
    const tab = this.root.querySelector(`.panes [value="${pane}"]`);
    if (tab) tab.checked = true;
  }

  enableAdding() {
    this.toolbar.querySelector("[data-add]").disabled = this.columns.length >= Number(this.urls.max);
  }

  updateUrl() {
    const query = new URLSearchParams(this.mode === "recorded" ? {} : { tools: this.mode });
    for (const column of this.columns) query.append("column", column.value);
    history.replaceState(null, "", `${location.pathname}?${query}`);
  }

  onError({ param, message }) {
    const field = param ? this.editors.fieldOf(param) : null;
    if (field) showProblem({ field, message: `${param}: ${message}` });
  }
}

// A viewer reads the columns and runs nothing.
if (document.getElementById("toolbar")) new RerunPage(document.getElementById("rerun"));
enhance(document.querySelector("main"));
keyboard({ links: ".column a", back: backLink() });
