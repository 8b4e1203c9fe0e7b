// Pages of a response: keyboard, and live events while the response runs.

import { backLink } from "./back.js";
import { showCopyButtons } from "./copy.js";
import { enhanced } from "./items.js";
import { keyboard } from "./keyboard.js";
import { selection } from "./selection.js";

const page = document.querySelector("#response");
// Before the keys of the page: Escape clears the selection first.
selection();
keyboard({ links: "#events a.open, .chain a.open", back: backLink() });

if (page.dataset.live && (document.querySelector("#answered") || document.querySelector("#events"))) import("./live.js").then(({ follow }) => follow(page.dataset.live));
if (document.querySelector("#player")) import("./player.js").then(({ start }) => start());

// A click elsewhere closes the menu.
const menu = document.querySelector("details.menu");
document.addEventListener("click", ({ target }) => menu.contains(target) || (menu.open = false));

// A wide screen has a column for the properties.
if (matchMedia("(min-width: 70rem)").matches) for (const properties of page.querySelectorAll("details.properties")) properties.open = true;

enhanced(document.body);

const isPhone = matchMedia("(max-width: 40rem)").matches;
if (isPhone) import("./inspector_sheet.js");

// Parts of the inspector, loaded with the first. A link to one of them, as that of a selected item, opens there.
const tabs = [...page.querySelectorAll(".parts [role=tab]")];
const open = (tab, url) => import("./inspector_parts.js").then((parts) => parts.open(tab, url));
page.querySelector(".parts")?.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const tab = tabs.at((tabs.indexOf(event.target) + step) % tabs.length);
  tab.focus();
  open(tab);
});
page.querySelector(".inspector").addEventListener("click", (event) => {
  const link = event.target.closest("[role=tab], a[href]");
  const tab = tabs.find((one) => one === link || one.dataset.url === link?.pathname);
  if (!tab || event.ctrlKey || event.metaKey || event.shiftKey || !tab.offsetWidth) return;
  event.preventDefault();
  open(tab, link.href);
});
const part = new URL(location.href).searchParams.get("part");
const asked = part && tabs.find((tab) => tab.dataset.url.endsWith(`/${part}`));
if (asked && (isPhone || asked.offsetWidth)) open(asked);

// JSON, SSE lines and code, also those of an event that the player fetches.
async function enhanceSources() {
  showCopyButtons();
  if (document.querySelector("[data-json], .wire, [data-code]")) (await import("./markdown/source_view.js")).enhanceSource();
}
document.addEventListener("fresh", enhanceSources);
enhanceSources();
