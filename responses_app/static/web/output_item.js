// While the model writes an item, its template is filled with the text so far.
import { enhanced, fetchFragment, parseFragment } from "./items.js";

const template = (shape) => document.querySelector(`template[data-shape=${shape}]`).content.firstElementChild.cloneNode(true);

export const plain = () => Object.assign(document.createElement("div"), { className: "plain", dir: "auto" });

const shapeOf = ({ type }) => (type === "message" || type === "reasoning" ? type : "call");

/** Output item. `url` is that of the response; `html` is the fragment of a stored item, absent for an item that is written now. */
export class OutputItem {
  constructor(item, url, html) {
    this.item = item;
    this.url = `${url}/items/${encodeURIComponent(item.id)}/fragment`;
    this.ready = Promise.resolve();
    this.element = html ? parseFragment(html) : template(shapeOf(item));
    this.element.dataset.item = item.id;
    if (html) this.ready = enhanced(this.element);
    else {
      // Before the connection can be lost.
      import("./final_item.js").catch(() => {});
      if (this.isCall) this.takeHead();
    }
  }

  get isCall() {
    return shapeOf(this.item) === "call";
  }

  // The title and the state of a call that the model still writes.
  async takeHead() {
    const fresh = await fetchFragment(this.url);
    if (!fresh || this.isDone) return;
    this.element.className = fresh.className;
    this.element.setAttribute("aria-label", fresh.getAttribute("aria-label"));
    this.element.querySelector(".head").replaceWith(fresh.querySelector(".head"));
    const label = fresh.querySelector("pre")?.getAttribute("aria-label");
    if (label) this.element.querySelector("pre").setAttribute("aria-label", label);
  }

  // The module comes with the first event; the events wait for it in their order.
  apply(event) {
    this.streamed ??= import("./streamed_item.js").then(({ StreamedItem }) => new StreamedItem(this.element, shapeOf(this.item), this.url));
    this.streamed.then((streamed) => streamed.apply(event));
  }

  complete(item) {
    this.item = item;
    this.isDone = true;
    // Streamed text that comes late would replace the fragment.
    this.ready = Promise.allSettled([this.streamed?.then((streamed) => streamed.finish())]).then(() => this.refresh());
  }

  async refresh(query = "") {
    return (await import("./final_item.js")).replace(this, this.url + query);
  }
}
