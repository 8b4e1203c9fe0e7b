// The list of conversations beside the page: fetched again when something was added to it.

export class Threads {
  constructor(element) {
    this.element = element;
  }

  async refresh() {
    const list = this.element.querySelector(".threads");
    // Who searches or reads further down keeps what they see.
    if (!list || list.dataset.plain !== "1") return;
    const response = await fetch(list.dataset.url, { redirect: "error" }).catch(() => null);
    if (!response?.ok) return;
    // Of our own template, where every title is escaped; a document that is only parsed runs nothing.
    const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = parsed.querySelector(".threads");
    if (fresh) list.replaceWith(document.adoptNode(fresh));
    this.mark();
  }

  mark() {
    for (const link of this.element.querySelectorAll(".threads a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}
