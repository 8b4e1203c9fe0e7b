// Parts of the inspector beside the turns: the properties, and other views of the response, fetched from their pages.
import { fetchPage, notice } from "./page_part.js";
import { mark } from "./selection.js";
import { addStyle } from "./style.js";

const PARAMETER = "part";
let shown = null;
// The chat has none of these; a page of a response has the first two.
const styles = ["list.css", "inspect.css", "inspector_parts.css"].map((name) => new URL(name, import.meta.url).href);
await Promise.all(styles.filter((href) => ![...document.styleSheets].some((sheet) => sheet.href === href)).map(addStyle));

const nameOf = (tab) => tab.pathname?.split("/").at(-1);

// The address of a response holds the part and the selected item.
function remember(part) {
  if (!document.querySelector("#response")) return;
  const url = new URL(location.href);
  if (part) url.searchParams.set(PARAMETER, part);
  else url.searchParams.delete(PARAMETER);
  history.replaceState(history.state, "", url);
}

function wholePage(url) {
  return Object.assign(document.createElement("a"), { className: "whole-page", href: url, textContent: "Open as a page" });
}

/** Shows the view at `url` in the panel. Its links keep their targets. */
async function load(panel, url) {
  // The second load would replace what a person clicks on meanwhile.
  if (shown === url.href && panel.hasAttribute("aria-busy")) return;
  shown = url.href;
  panel.setAttribute("aria-busy", "true");
  const { page, reason } = await fetchPage(url);
  const view = page?.querySelector("#response > .view");
  if (shown !== url.href) return;
  for (const one of view?.querySelectorAll(".tabs, #running, #player, #takeovers, template") ?? []) one.remove();
  for (const link of view?.querySelectorAll("a[href]") ?? []) link.href = new URL(link.getAttribute("href"), url).href;
  for (const form of view?.querySelectorAll("form") ?? []) form.action = new URL(form.getAttribute("action") ?? "", url).href;
  panel.replaceChildren(wholePage(url), ...(view?.childNodes ?? [notice("This part", reason, () => (panel.focus(), load(panel, url)))]));
  panel.removeAttribute("aria-busy");
  panel.scrollTop = 0;
  mark(new URL(location.href).searchParams.get("selected"));
  document.dispatchEvent(new Event("fresh"));
}

export function open(tab, url = tab.href) {
  const tabs = tab.parentElement.children;
  // Not on the page any more if a person has closed the inspector meanwhile.
  const inspector = tab.parentElement.parentElement;
  const panel = inspector.querySelector("#inspector-part");
  for (const one of tabs) {
    one.setAttribute("aria-selected", String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
  }
  inspector.querySelector("#inspector-properties").hidden = tab !== tabs[0];
  panel.hidden = tab === tabs[0];
  remember(panel.hidden ? null : nameOf(tab));
  if (panel.hidden) {
    shown = null;
    return;
  }
  panel.setAttribute("aria-labelledby", tab.id);
  const target = new URL(url, location.href);
  const selected = new URL(location.href).searchParams.get("selected");
  if (selected) target.searchParams.set("selected", selected);
  load(panel, target);
}

// The prompt marks the tokens of the selected item.
document.addEventListener("selected", () => {
  const tab = document.querySelector(".inspector .parts [aria-selected=true]");
  if (tab && nameOf(tab) === "prompt") open(tab);
});
