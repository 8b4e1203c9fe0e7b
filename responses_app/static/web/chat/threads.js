// The list of conversations beside the page: fetched again when something was added to it.

export class Threads {
  constructor(element) {
    this.element = element;
    const form = element.querySelector(".search");
    form.addEventListener("submit", (event) => (event.preventDefault(), this.search()));
    // An emptied field shows all of them again.
    form.elements.q.addEventListener("input", ({ target }) => target.value === "" && this.search());
    element.addEventListener("click", (event) => {
      const link = event.target.closest(".older");
      if (link) (event.preventDefault(), this.module().then(({ older }) => older(this, link)));
    });
  }

  module = () => import("./thread_search.js");

  async search() {
    (await this.module()).search(this);
  }

  get list() {
    return this.element.querySelector(".threads");
  }

  // What the address of the page says of the search, so that a reload and an opened hit keep it.
  get query() {
    const words = new URLSearchParams(location.search).get("q");
    return words ? `?${new URLSearchParams({ q: words })}` : "";
  }

  async refresh() {
    // Who searches or reads further down keeps what they see.
    if (this.list.dataset.plain !== "1" || this.query) return;
    const fresh = await this.fetched({});
    if (fresh) this.list.replaceWith(fresh);
    this.mark();
  }

  // The list from the server, or null where that failed or something else was asked for since.
  async fetched(query) {
    const mine = (this.asked = {});
    const url = `${this.list.dataset.url}&${new URLSearchParams(query)}`;
    const response = await fetch(url, { redirect: "error" }).catch(() => null);
    const text = response?.ok ? await response.text() : null;
    if (mine !== this.asked || text === null) return null;
    // Of our own template, where every title is escaped; a document that is only parsed runs nothing.
    return document.adoptNode(new DOMParser().parseFromString(text, "text/html").querySelector(".threads"));
  }

  mark() {
    for (const link of this.element.querySelectorAll(".threads a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}
