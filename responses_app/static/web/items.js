// Items: the server's HTML fragment of each, the only drawing. While the model writes, its template is filled with the text so far.
import { visible, visibleAfter } from "./visible.js";

const SUMMARY_LENGTH = 72;
// Streamed characters that a page can lay out without a noticeable pause.
const MAX_SHOWN_CHARS = 50_000;

/** The element of a fragment. The server has escaped all text, and DOMParser runs no scripts. */
export const parseFragment = (html) => document.adoptNode(new DOMParser().parseFromString(html, "text/html").body.firstElementChild);

export async function fetchFragment(url) {
  const response = await fetch(url, { redirect: "error" }).catch(() => null);
  return response?.ok ? parseFragment(await response.text()) : null;
}

/** Colours the code and typesets the math of Markdown in `element`. */
export async function enhanced(element) {
  if (element.querySelector(".markdown")) (await import("./markdown/enhance.js")).enhance(element);
}

async function replaceFragment(element, url) {
  const fresh = await fetchFragment(url);
  if (fresh) await (await import("./morph.js")).morph(element, fresh);
}

const template = (shape) => document.querySelector(`template[data-shape=${shape}]`).content.firstElementChild.cloneNode(true);

// A single text node, so that a delta costs an append and not a new layout of the whole text.
class GrowingText {
  constructor(element) {
    this.element = element;
    this.node = element.appendChild(document.createTextNode(""));
    this.length = 0;
  }

  append(text) {
    this.length += text.length;
    if (this.length <= MAX_SHOWN_CHARS) this.node.appendData(visibleAfter(this.node.data, text));
  }

  finish() {}
}

export const plain = () => Object.assign(document.createElement("div"), { className: "plain", dir: "auto" });

// Streamed text of a part: plain until the Markdown module is loaded.
class StreamedText {
  constructor() {
    this.text = "";
    this.view = new GrowingText(plain());
    this.ready = import("./markdown/stream.js").then(({ MarkdownStream }) => {
      const { element } = this.view;
      this.view = new MarkdownStream();
      this.view.append(this.text);
      element.replaceWith(this.view.element);
    });
  }

  append(text) {
    this.text += text;
    this.view.append(text);
  }

  finish() {
    this.view.finish();
  }
}

const shapeOf = ({ type }) => (type === "message" || type === "reasoning" ? type : "call");

/** Output item. `url` is that of the response; `html` is the fragment of a stored item, absent for an item that is written now. */
export class OutputItem {
  constructor(item, url, html) {
    this.item = item;
    this.url = `${url}/items/${encodeURIComponent(item.id)}/fragment`;
    this.parts = new Map();
    this.ready = Promise.resolve();
    this.element = html ? parseFragment(html) : template(shapeOf(item));
    this.element.dataset.item = item.id;
    if (html) enhanced(this.element);
    else if (shapeOf(item) === "call") this.takeHead();
  }

  // The title of a call that the model still writes.
  async takeHead() {
    const fresh = await fetchFragment(this.url);
    if (!fresh || this.isDone) return;
    this.element.className = fresh.className;
    this.element.setAttribute("aria-label", fresh.getAttribute("aria-label"));
    this.element.querySelector(".head code").textContent = fresh.querySelector(".head code").textContent;
    const label = fresh.querySelector("pre")?.getAttribute("aria-label");
    if (label) this.element.querySelector("pre").setAttribute("aria-label", label);
  }

  apply(event) {
    const shape = shapeOf(this.item);
    if (shape === "call") this.showProgress(event);
    if (typeof event.delta !== "string") return;
    if (shape === "message") this.part(event.content_index, event.type === "response.refusal.delta").append(event.delta);
    else if (shape === "call") (this.text ??= new GrowingText(this.element.querySelector("pre"))).append(event.delta);
    else this.think(event);
  }

  part(index, isRefusal) {
    if (!this.parts.has(index)) {
      const part = isRefusal ? new GrowingText(plain()) : new StreamedText();
      this.parts.set(index, part);
      this.element.append(part.view?.element ?? part.element);
    }
    return this.parts.get(index);
  }

  think(event) {
    // A summary may be a copy of the text that comes beside it.
    this.hasContent ||= "content_index" in event;
    if (this.hasContent && "summary_index" in event) return;
    this.text ??= new GrowingText(this.element.appendChild(plain()));
    this.text.append(event.delta);
    this.tail = ((this.tail ?? "") + event.delta).slice(-4 * SUMMARY_LENGTH);
    // The current line.
    this.element.querySelector(".latest").textContent = visible(this.tail.trimEnd().split("\n").at(-1)).slice(-SUMMARY_LENGTH);
  }

  // The events wait for the module in their order.
  showProgress({ type }) {
    this.clock ??= import("./call_clock.js").then(({ CallClock }) => new CallClock(this.element));
    this.clock.then((clock) => clock.take(type));
  }

  complete(item) {
    this.item = item;
    this.isDone = true;
    this.clock?.then((clock) => clock.stop());
    for (const part of this.parts.values()) part.finish();
    // A module that comes late would replace the fragment by the streamed text.
    this.ready = Promise.all([...this.parts.values()].map((part) => part.ready)).then(() => this.refresh());
  }

  /** Takes the fragment of the server. */
  async refresh(query = "") {
    await replaceFragment(this.element, this.url + query);
  }
}

// Long texts end with a link to the JSON of the item, which a script replaces by the whole text.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.whole");
  const element = link?.closest("[data-item].message");
  if (!element || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  replaceFragment(element, `${link.href}/fragment?whole`);
});
