// Selection of an item: the same in the turns, the timeline and the events. The address holds it, and the inspector shows it.
import { fetchFragment } from "./items.js";

const PARAMETER = "selected";
const timeline = document.querySelector(".timeline .rounds[role=listbox]");
const options = timeline ? [...timeline.querySelectorAll("[role=option]")] : [];
const marked = () => document.querySelectorAll(":is(#response .view, #inspector-part) [data-item]");
let current = new URL(location.href).searchParams.get(PARAMETER) ?? document.querySelector("#response .view tr[aria-current], .timeline [aria-selected=true]")?.dataset.item ?? null;

/** Marks the item everywhere on the page. */
export function mark(uid) {
  current = uid;
  for (const one of marked()) {
    if (one.dataset.item === uid) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  for (const option of options) option.setAttribute("aria-selected", String(option.dataset.item === uid));
  for (const link of document.querySelectorAll("#response .tabs a")) link.href = withParameter(link.href, uid);
}

function withParameter(href, uid) {
  const url = new URL(href);
  if (uid) url.searchParams.set(PARAMETER, uid);
  else url.searchParams.delete(PARAMETER);
  return url.href;
}

export async function select(uid) {
  mark(uid);
  history.replaceState(history.state, "", withParameter(location.href, uid));
  document.dispatchEvent(new Event("selected"));
  const part = document.querySelector("#selected");
  if (!uid) return part.replaceChildren();
  const [page] = location.pathname.match(/^\/responses\/[^/]+/);
  const fresh = await fetchFragment(`${page}/items/${encodeURIComponent(uid)}/selected`);
  if (fresh && current === uid) part.replaceChildren(...fresh.childNodes);
}

// Marks the bar that Enter selects.
function move(place) {
  for (const option of options) option.classList.remove("active");
  const option = options[Math.min(Math.max(place, 0), options.length - 1)];
  option.classList.add("active");
  option.scrollIntoView({ block: "nearest" });
  timeline.setAttribute("aria-activedescendant", option.id);
}

function onTimelineKey(event) {
  const place = options.findIndex((one) => one.matches(".active"));
  const places = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: options.length - 1 };
  if (event.key in places) move(places[event.key]);
  else if ((event.key === "Enter" || event.key === " ") && place >= 0) select(options[place].dataset.item);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

// The item of an event of the page; a control, or text that is being selected with the mouse, has a use of its own.
function itemOf(target) {
  const item = target.closest?.(":is(#response .view, #inspector-part) [data-item], .timeline [role=option]");
  return item && !target.closest("a, button, input, textarea, form") ? item : null;
}

export function selection() {
  options.forEach((option, place) => (option.id = `bar-${place}`));
  if (timeline) {
    timeline.tabIndex = 0;
    timeline.addEventListener("keydown", onTimelineKey);
    timeline.addEventListener("focus", () => move(options.findIndex((one) => one.getAttribute("aria-selected") === "true")));
    timeline.addEventListener("blur", () => options.forEach((one) => one.classList.remove("active")));
  }
  for (const item of marked()) if (item.matches(".card, .message")) item.tabIndex = 0;
  document.addEventListener("click", ({ target }) => {
    const item = itemOf(target);
    if (item && getSelection().isCollapsed) select(item.dataset.item);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches(".view [data-item]")) select(event.target.dataset.item);
    // The page of an event always shows the item of the event.
    else if (event.key === "Escape" && current && !document.querySelector("#event, details.menu[open]") && !event.target.closest("input, textarea, dialog")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      select(null);
    }
  }, true);
}
