// List of conversations; thread_search.js and thread_refresh.js change it.

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

  // For reloads and links of results.
  get query() {
    const words = new URLSearchParams(location.search).get("q");
    return words ? `?${new URLSearchParams({ q: words })}` : "";
  }

  async refresh() {
    await (await import("./thread_refresh.js")).refresh(this);
  }

  mark() {
    const links = [...this.element.querySelectorAll(".threads li a:not(.options)")];
    const current = links.find((link) => link.pathname === location.pathname);
    // Another branch has no link of its own.
    if (current) for (const link of links) link.ariaCurrent = link === current ? "page" : null;
  }
}
