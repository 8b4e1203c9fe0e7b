// Parts of the inspector beside the turns: the properties, and other views of the response, fetched from their pages.
import { mark } from "./selection.js";

const PARAMETER = "part";
const tabs = [...document.querySelectorAll(".inspector [role=tab]")];
const properties = document.querySelector("#inspector-properties");
const panel = document.querySelector("#inspector-part");
let shown = null;
// Goes on after a failure, as the parts work without their styles.
await new Promise((resolve) => {
  const sheet = document.createElement("link");
  Object.assign(sheet, { rel: "stylesheet", href: new URL("inspector_parts.css", import.meta.url).href, onload: resolve, onerror: resolve });
  document.head.append(sheet);
});

const nameOf = (tab) => tab.pathname?.split("/").at(-1);

// The address holds the part and the selected item.
function remember(part) {
  const url = new URL(location.href);
  if (part) url.searchParams.set(PARAMETER, part);
  else url.searchParams.delete(PARAMETER);
  history.replaceState(history.state, "", url);
}

function wholePage(url) {
  return Object.assign(document.createElement("a"), { className: "whole-page", href: url, textContent: "Open as a page" });
}

function problem() {
  return Object.assign(document.createElement("p"), { className: "bad", textContent: "This part can’t be loaded." });
}

/** Shows the view at `url` in the panel. Its links keep their targets. */
async function load(url) {
  // The second load would replace what a person clicks on meanwhile.
  if (shown === url.href && panel.hasAttribute("aria-busy")) return;
  shown = url.href;
  panel.setAttribute("aria-busy", "true");
  const response = await fetch(url, { headers: { Accept: "text/html" }, redirect: "error" }).catch(() => null);
  const view = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#response > .view") : null;
  if (shown !== url.href) return;
  for (const one of view?.querySelectorAll(".tabs, #running, #player, #takeovers, template") ?? []) one.remove();
  for (const link of view?.querySelectorAll("a[href]") ?? []) link.href = new URL(link.getAttribute("href"), url).href;
  for (const form of view?.querySelectorAll("form") ?? []) form.action = new URL(form.getAttribute("action") ?? "", url).href;
  panel.replaceChildren(wholePage(url), ...(view?.childNodes ?? [problem()]));
  panel.removeAttribute("aria-busy");
  panel.scrollTop = 0;
  mark(new URL(location.href).searchParams.get("selected"));
  document.dispatchEvent(new Event("fresh"));
}

export function open(tab, url = tab.href) {
  for (const one of tabs) {
    one.setAttribute("aria-selected", String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
  }
  properties.hidden = tab !== tabs[0];
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
  load(target);
}

// The prompt marks the tokens of the selected item.
document.addEventListener("selected", () => {
  const tab = tabs.find((one) => one.getAttribute("aria-selected") === "true");
  if (tab && nameOf(tab) === "prompt") open(tab);
});
