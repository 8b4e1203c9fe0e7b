// List of conversations, refreshed after a new response.

export class Threads {
  constructor(element) {
    this.element = element;
    const form = element.querySelector(".search");
    form.addEventListener("submit", (event) => (event.preventDefault(), this.search()));
    // Clearing the field shows all conversations again.
    form.elements.q.addEventListener("input", ({ target }) => target.value === "" && this.search());
    element.addEventListener("click", (event) => {
      const link = event.target.closest(".older");
      if (link) (event.preventDefault(), this.module().then(({ older }) => older(this, link)));
      const options = event.target.closest(".options");
      if (options && !event.ctrlKey && !event.metaKey) (event.preventDefault(), import("./thread_options.js").then(({ show }) => show(this, options)));
    });
  }

  module = () => import("./thread_search.js");

  async search() {
    (await this.module()).search(this);
  }

  get list() {
    return this.element.querySelector(".threads");
  }

  // The search in the URL of the page, for reloads and links of results.
  get query() {
    const words = new URLSearchParams(location.search).get("q");
    return words ? `?${new URLSearchParams({ q: words })}` : "";
  }

  async refresh() {
    // Do not replace search results and older pages.
    if (this.list.dataset.plain !== "1" || this.query) return;
    const fresh = await this.fetchList({});
    const focused = document.activeElement.closest(".threads a")?.getAttribute("href");
    if (fresh) this.list.replaceWith(fresh);
    this.mark();
    if (focused) this.list.querySelector(`[href="${focused}"]`)?.focus();
  }

  // The list from the server, or null after a failure or a newer request.
  async fetchList(query) {
    const token = (this.latest = {});
    const url = `${this.list.dataset.url}&${new URLSearchParams(query)}`;
    const response = await fetch(url, { redirect: "error" }).catch(() => null);
    const text = response?.ok ? await response.text() : null;
    if (token !== this.latest || text === null) return null;
    // The server's template escapes every title, and DOMParser runs no scripts.
    return document.adoptNode(new DOMParser().parseFromString(text, "text/html").querySelector(".threads"));
  }

  mark() {
    for (const link of this.element.querySelectorAll(".threads li a:not(.options)")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}
