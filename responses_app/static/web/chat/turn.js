// One response on the page: what was said to the model, what it answers, and what can be done with either.
import { blockOf, rendered } from "./blocks.js";
import { button, el, visible } from "./dom.js";
import { figures, outcome } from "./outcome.js";

export class Turn {
  // `data`: {id, previous, model, input, siblings, metadata, times}; `actions`: edit, regenerate, move, retry.
  constructor(data, actions, urls) {
    Object.assign(this, { siblings: [], status: "queued", metadata: {}, ...data, actions, urls });
    this.blocks = new Map();
    this.answer = el("div", { class: "answer" });
    this.outcome = el("div", { class: "outcome" });
    this.foot = el("footer");
    const speaker = el("h3", { class: "speaker" }, this.model ?? "Model");
    this.article = el("article", { class: "model", "aria-busy": "true" }, speaker, this.answer, this.outcome, this.foot);
    this.element = el("li", { class: "turn" }, this.asked(), this.article);
  }

  // Only messages are told as such: the outputs of calls stand in the cards of these.
  asked() {
    const said = this.input.filter((item) => item.type === undefined || item.type === "message");
    if (said.length === 0) return null;
    this.edit = button("Edit", () => this.openEditor(), { class: "plain", "aria-label": "Edit this message" });
    const mine = said.at(-1).role === "user";
    return el("article", { class: "person" }, el("h3", { class: "speaker" }, mine ? "You" : ROLES[said.at(-1).role]), ...said.flatMap(contents), mine ? el("footer", {}, this.edit) : null);
  }

  async openEditor() {
    const { openEditor } = await import("./editor.js");
    openEditor(this.edit, textOf(this.input), (text) => this.actions.edit(this, text));
  }

  hear(event) {
    if (event.response) this.status = event.response.status;
    if (event.type === "response.created") this.id = event.response.id;
    if (event.type === "response.output_item.added") this.block(event.output_index, event.item);
    else if (event.type === "response.output_item.done") this.done(event.output_index, event.item);
    else if (event.output_index !== undefined) this.blocks.get(event.output_index)?.hear(event);
  }

  done(index, item) {
    this.block(index, item).settle(item);
    if (item.type === "reasoning") this.fetchTimes();
  }

  block(index, item) {
    if (!this.blocks.has(index)) {
      const block = blockOf(item);
      this.blocks.set(index, block);
      this.answer.append(block.element);
    }
    return this.blocks.get(index);
  }

  // The snapshot says what every event before it has said; a page that was opened late has nothing but this.
  end(response) {
    this.status = response.status;
    response.output.forEach((item, index) => {
      if (!this.blocks.has(index)) this.block(index, item).settle(item);
    });
    this.outcome.replaceChildren(...outcome(response, () => this.actions.regenerate(this)));
    this.usage = response.usage;
    this.settle({ again: response.status !== "failed" });
    if (this.times) this.applyTimes(this.times);
    else this.fetchTimes();
  }

  // The times of the log. The page's own clock knows nothing of what came before it was opened.
  async fetchTimes() {
    const response = await fetch(`${this.urls.chat}/${encodeURIComponent(this.id)}/times`, { redirect: "error" }).catch(() => null);
    if (response?.ok) this.applyTimes(await response.json());
  }

  applyTimes(times) {
    const thoughts = [...this.blocks.values()].filter((block) => block.took);
    times.thoughts.forEach((seconds, place) => thoughts[place]?.took(seconds));
    const old = this.foot.querySelector(".figures");
    if (this.usage) old?.replaceWith(figures(this.usage, times));
  }

  // The page has lost it, or it was never made.
  lose(error, retry) {
    const text = el("p", { class: "bad", role: "alert" }, visible(error.message));
    this.outcome.replaceChildren(text, button("Try again", retry));
    this.settle({ again: false });
  }

  trouble(misses) {
    this.outcome.replaceChildren(...(misses ? [el("p", { class: "warn" }, "Connection lost. Reconnecting… (generation continues on the server)")] : []));
  }

  // `again`: whether it may be regenerated here; where it failed, the button beside the message does that.
  settle({ again: offered }) {
    this.article.setAttribute("aria-busy", "false");
    const again = this.id && offered && button("Regenerate", () => this.actions.regenerate(this), { class: "plain" });
    const log = this.id && el("a", { href: `${this.urls.responses}/${this.id}/events` }, "Events");
    this.foot.replaceChildren(...[this.switch(), again, log, figures(this.usage)].filter(Boolean));
  }

  // From one branch of the parent to the next.
  switch() {
    if (this.siblings.length < 2) return null;
    const at = this.siblings.indexOf(this.id);
    const step = (sign, by, label) =>
      button(sign, () => this.actions.move(this.siblings[at + by]), { class: "plain", "aria-label": label, disabled: !this.siblings[at + by] });
    return el("span", { class: "branches", role: "group", "aria-label": "Branches" }, step("‹", -1, "Previous branch"), `${at + 1} of ${this.siblings.length}`, step("›", 1, "Next branch"));
  }

  get calls() {
    return [...this.blocks.values()].filter((block) => block.open);
  }

  get text() {
    return this.answer.textContent && [...this.answer.querySelectorAll(".message")].map((one) => one.textContent).join("\n");
  }
}

const ROLES = { system: "System", developer: "Developer", assistant: "Assistant" };

const partsOf = (item) => (typeof item.content === "string" ? [{ type: "input_text", text: item.content }] : item.content);

function contents(item) {
  return partsOf(item).map((part) => {
    if (part.type !== "input_image") return item.role === "user" ? el("div", { class: "plain", dir: "auto" }, visible(part.text ?? "")) : rendered(part.text ?? "");
    // A picture elsewhere is not fetched: whoever wrote its address would learn who looks.
    if (part.image_url?.startsWith("data:image/")) return el("img", { src: part.image_url, alt: "Attached image" });
    return el("p", { class: "quiet" }, `Image: ${visible(part.image_url ?? part.file_id ?? "")}`);
  });
}

export function textOf(input) {
  const parts = input.filter((item) => item.role === "user").flatMap(partsOf);
  return parts.filter((part) => part.type === "input_text").map((part) => part.text).join("\n");
}
