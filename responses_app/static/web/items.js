// Items: the server's HTML fragment of each, the only drawing. While the model writes, its template is filled with the text so far.

/** The element of a fragment. The server has escaped all text, and DOMParser runs no scripts. */
export const parseFragment = (html) => document.adoptNode(new DOMParser().parseFromString(html, "text/html").body.firstElementChild);

export async function fetchFragment(url) {
  const response = await fetch(url, { redirect: "error" }).catch(() => null);
  return response?.ok ? parseFragment(await response.text()) : null;
}

/** Colours the code and typesets the math of Markdown in `element`. Resolves when that is done. */
export async function enhanced(element) {
  if (element.querySelector(".markdown, pre[data-language]")) await (await import("./markdown/enhance.js")).enhance(element);
}

async function replaceFragment(element, url) {
  const fresh = await fetchFragment(url);
  if (fresh) await (await import("./morph.js")).morph(element, fresh);
}

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
    else if (this.isCall) this.takeHead();
  }

  get isCall() {
    return shapeOf(this.item) === "call";
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

  // The module comes with the first event; the events wait for it in their order.
  apply(event) {
    this.streamed ??= import("./streamed_item.js").then(({ StreamedItem }) => new StreamedItem(this.element, shapeOf(this.item)));
    this.streamed.then((streamed) => streamed.apply(event));
  }

  complete(item) {
    this.item = item;
    this.isDone = true;
    // Streamed text that comes late would replace the fragment.
    this.ready = Promise.resolve(this.streamed?.then((streamed) => streamed.finish())).then(() => this.refresh());
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
