// Items that the page has not loaded: those before the editors, and the continuation behind an item.
import { button, el } from "../chat/dom.js";

async function fetchJson(url) {
  const response = await fetch(url).catch(() => null);
  return response?.ok ? response.json() : null;
}

/** Replaces the items of the editors by those up to an item of the original or of its context. */
export async function continueFrom(editors, uid) {
  const source = `${editors.contextUrl}?until=${encodeURIComponent(uid)}`;
  const context = await fetchJson(source);
  if (!context) return void (editors.note.textContent = "This item can’t be loaded.");
  Object.assign(editors.list.dataset, { previous: context.previous ?? "", source });
  for (const item of editors.items) item.remove();
  for (const item of context.items) editors.add(item);
  showEarlier(editors, context.earlier);
  editors.note.textContent = "The next run continues behind the last item.";
}

/** Shows more of the items before the editors. */
export async function load(editors) {
  const context = await fetchJson(`${editors.list.dataset.source}&end=${editors.earlier}`);
  if (!context) return void (editors.note.textContent = "The earlier items can’t be loaded. Try again.");
  const [first] = editors.items;
  for (const item of context.items) {
    const element = editors.add(item);
    Object.assign(element, { open: false }).dataset.loaded = "";
    if (first) first.before(element);
  }
  editors.note.textContent = "";
  showEarlier(editors, context.earlier);
  editors.items[0].querySelector("summary").focus();
}

/** Names the number of items before the editors. */
export function showEarlier({ list }, count) {
  list.dataset.earlier = count;
  list.querySelector("[data-unloaded]")?.remove();
  if (!count) return;
  const text = `${count.toLocaleString("en")} earlier ${count === 1 ? "item, sent as it is" : "items, sent as they are"}. `;
  list.querySelector("legend").after(el("p", { class: "quiet", "data-unloaded": true }, text, button("Show more", null, { class: "plain", "data-load": true })));
}

/** References to the items before the editors, or null. */
export async function references({ list, earlier }) {
  return (await fetchJson(`${list.dataset.source}&references=1&end=${earlier}`))?.items;
}
