// Pages of a response: keyboard, and live events while the response runs.

import { backLink } from "./back.js";
import { enhanced } from "./items.js";
import { keyboard } from "./keyboard.js";
import { selection } from "./selection.js";
import "./sources.js";

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

// The tabs of a phone scroll: the current one is shown.
const current = page.querySelector("nav.tabs [aria-current]");
if (current) current.parentElement.scrollLeft = current.offsetLeft - 150;

const isPhone = matchMedia("(max-width: 40rem)").matches;
if (isPhone) import("./inspector_sheet.js");
if (page.querySelector(".parts")) import("./inspector_tabs.js").then(({ start }) => start(page.querySelector(".inspector")));
