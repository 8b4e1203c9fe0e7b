// Turn of a conversation: input, response and their actions.
import { icon } from "../icon.js";
import { enhanced, parseFragment } from "../items.js";
import { ChatItem } from "./blocks.js";
import { button, el } from "./dom.js";
import { outcome, statistics } from "./outcome.js";

export class Turn {
  // `data`: {id, number, previous, model, input, siblings, metadata, times, fragments, speakers, draft}.
  constructor(data, actions, urls) {
    Object.assign(this, { siblings: [], status: "queued", metadata: {}, fragments: {}, speakers: {}, ...data, actions, urls });
    this.blocks = new Map();
    this.answer = el("div", { class: "answer" });
    this.outcome = el("div", { class: "outcome" });
    this.foot = el("footer");
    const name = el("h3", { class: "speaker" }, this.model ?? "Model");
    this.article = el("article", { class: "model", "aria-busy": "true" }, name, this.answer, this.outcome, this.foot);
    this.messages = [];
    this.element = el("li", { class: "turn" }, ...this.inputArticles(), this.article);
  }

  // Results of earlier calls stand in the cards of the calls.
  inputArticles() {
    const articles = [];
    let last;
    for (const item of this.input) {
      const element = this.fragments[item.id] ? this.storedItem(item) : item.role && this.draft?.(item);
      if (!element) continue;
      const name = this.speakers[item.id] ?? "You";
      if (name !== last) articles.push(el("article", { class: "person" }, el("h3", { class: "speaker" }, (last = name))));
      articles.at(-1).append(element);
      if (name === "You") this.asked = articles.at(-1);
    }
    this.edit = button("Edit", () => this.openEditor(), { class: "plain", "aria-label": `Edit message ${this.number}` });
    this.asked?.append(el("footer", {}, this.edit));
    return articles;
  }

  storedItem(item) {
    const element = parseFragment(this.fragments[item.id]);
    this.messages.push(enhanced(element));
    return element;
  }

  // Resolves when all items are in place and final.
  get settled() {
    return Promise.all([...this.blocks.values()].flatMap((block) => [block.placed, block.ready]));
  }

  // Resolves when code has its colours and math is typeset.
  get drawn() {
    return Promise.allSettled([...this.messages, ...[...this.blocks.values()].map((block) => block.ready)]);
  }

  async openEditor() {
    const { openEditor } = await import("./editor.js");
    openEditor(this.edit, this.input, (text, keeps) => this.actions.edit(this, text, keeps));
  }

  apply(event) {
    if (event.response) ({ id: this.id, status: this.status } = event.response);
    if (event.type === "response.output_item.added") this.block(event.output_index, event.item);
    else if (event.type === "response.output_item.done") this.block(event.output_index, event.item).complete(event.item);
    else if (event.output_index !== undefined) this.blocks.get(event.output_index)?.apply(event);
  }

  block(index, item) {
    if (!this.blocks.has(index)) {
      const block = new ChatItem(item, `${this.urls.responses}/${this.id}`, this.fragments[item.id]);
      this.place(block, [...this.blocks.values()].at(-1));
      this.blocks.set(index, block);
    }
    return this.blocks.get(index);
  }

  // A new item waits until the call above it has its final height.
  place(block, before) {
    const append = () => this.answer.append(block.element);
    if (this.fragments[block.item.id] || !before) return append();
    // A changed element needs a parent.
    el("div", {}, block.element);
    block.placed = Promise.allSettled([before.placed, before.isCall && before.ready]).then(append);
  }

  complete(response) {
    this.status = response.status;
    response.output.forEach((item, index) => {
      if (this.blocks.has(index)) return;
      const block = this.block(index, item);
      if (!this.fragments[item.id]) block.complete(item);
    });
    this.outcome.replaceChildren(...outcome(response, this.canRepeat ? () => this.actions.regenerate(this) : null));
    if (response.output_problems) import("./problems.js").then((module) => module.showProblems(this.outcome, response));
    this.usage = response.usage;
    this.showFoot = () => this.showActions({ canRegenerate: response.status !== "failed" });
    if ([...this.blocks.values()].every((block) => this.fragments[block.item.id])) this.showFoot();
    // The chat adds the forms of open calls first.
    else this.settled.then(() => (this.calls.length ? this.endBusy() : this.showFoot()));
    if (this.times) this.applyTimes(this.times);
    else this.timed = this.fetchTimes();
  }

  async fetchTimes() {
    const response = await fetch(`${this.urls.chat}/${encodeURIComponent(this.id)}/times`, { redirect: "error" }).catch(() => null);
    if (response?.ok) this.applyTimes(await response.json());
  }

  applyTimes(times) {
    this.times = times;
    if (times.ending) this.outcome.querySelector(".warn").textContent = times.ending;
    const old = this.foot.querySelector(".figures");
    if (this.usage) old?.replaceWith(statistics(this.usage, times));
  }

  endBusy() {
    this.article.setAttribute("aria-busy", "false");
  }

  showActions({ canRegenerate }) {
    this.settled.then(() => this.endBusy());
    const hidden = () => el("span", { class: "visually-hidden" }, ` answer ${this.number}`);
    const regenerate = this.id && canRegenerate && this.canRepeat && button(["Regenerate", hidden()], () => this.actions.regenerate(this), { class: "plain" });
    const text = this.response && textOfOutput(this.response);
    const copy = text && navigator.clipboard && button(["Copy", hidden()], () => this.copy(copy, text), { class: "plain" });
    const log = this.id && el("a", { href: `${this.urls.responses}/${this.id}/events` }, "Events", hidden());
    const info = this.id && button(icon("info"), () => this.inspect(info), { class: "plain", "aria-label": `Properties of answer ${this.number}`, "aria-expanded": "false" });
    this.foot.replaceChildren(...[copy, regenerate, log, info, statistics(this.usage, this.times)].filter(Boolean));
    if (this.siblings.length > 1) import("./branches.js").then(({ showBranches }) => showBranches(this));
  }

  async copy(control, text) {
    await navigator.clipboard.writeText(text);
    const [label] = control.childNodes;
    label.data = "Copied";
    setTimeout(() => (label.data = "Copy"), 2000);
  }

  async inspect(control) {
    const { show } = await import("./inspector.js");
    show(`${this.urls.chat}/${encodeURIComponent(this.id)}/inspector`, control);
  }

  // False for a turn that decides about an approval: each counts once.
  get canRepeat() {
    return !this.input.some((item) => item.type === "mcp_approval_response");
  }

  get calls() {
    return [...this.blocks.values()].filter((block) => block.open);
  }

  get text() {
    return [...this.answer.querySelectorAll(".message")].map((message) => message.textContent).join("\n");
  }
}

export const partsOf = (item) => (typeof item.content === "string" ? [{ type: "input_text", text: item.content }] : item.content);

export function textOf(input) {
  const parts = input.filter((item) => item.role === "user").flatMap(partsOf);
  return parts.filter((part) => part.type === "input_text").map((part) => part.text).join("\n");
}

export function textOfOutput({ output }) {
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  return parts.map((part) => part.text ?? part.refusal).join("\n");
}
