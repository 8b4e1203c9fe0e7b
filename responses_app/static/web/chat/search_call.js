// Cards of searches that the server runs: a search on the web, a page that was opened, and a search in files.
import { CallCard, folded } from "./call_card.js";
import { el, visible } from "./dom.js";

const WEB_URL = /^https?:\/\//;
const NAMES = { open_page: "open page", find_in_page: "find in page" };

class SearchCall extends CallCard {
  constructor(name, label) {
    super(name, label, "Query");
  }

  apply(event) {
    if (event.type.endsWith(".searching")) this.start();
  }

  showQuery(text) {
    this.setText(text);
    this.text.element.hidden = !text;
  }
}

class WebSearch extends SearchCall {
  constructor() {
    super("web search", "Web search by the server");
  }

  complete({ action, results, status }) {
    this.name.textContent = NAMES[action.type] ?? "web search";
    this.showQuery(action.pattern ?? action.query ?? "");
    this.finish(status);
    const pages = results ?? (action.sources ?? (action.url ? [action] : []));
    const entries = pages.filter((page) => page.url).map((page) => el("li", {}, pageLink(page), page.snippet ? el("p", { class: "quiet", dir: "auto" }, page.snippet) : null));
    if (entries.length) this.showResult(el("ul", {}, ...entries));
    else if (action.type === "search" && status === "completed") this.showResult(el("p", { class: "quiet" }, "No pages."));
  }
}

// Only web addresses are links.
function pageLink({ url, title }) {
  return WEB_URL.test(url) ? el("a", { href: url, title: url, rel: "noopener noreferrer nofollow", target: "_blank" }, title || url) : visible(url);
}

class FileSearch extends SearchCall {
  constructor() {
    super("file search", "File search by the server");
  }

  complete({ queries, results, status }) {
    this.showQuery((queries ?? []).join("\n"));
    this.finish(status);
    const passages = (results ?? []).flatMap((result) => [el("h4", { dir: "auto" }, result.filename), folded(result.text)]);
    if (passages.length) this.showResult(...passages);
    else if (results && status === "completed") this.showResult(el("p", { class: "quiet" }, "No passages."));
  }
}

export const SEARCH_KINDS = { web_search_call: WebSearch, file_search_call: FileSearch };
