// Inspector of an answer, with the parts of the page of its response, beside the conversation or in a sheet on a phone. Loaded with
// its first use.
import { start } from "../inspector_tabs.js";
import "../local_time.js";
import { fetchPage, notice } from "../page_part.js";
import "../sources.js";
import { addStyle } from "../style.js";
import { button, el } from "./dom.js";

const styled = addStyle(new URL("inspector.css", import.meta.url).href);
const content = el("div");
const panel = el("aside", { class: "inspector", "aria-label": "Properties of the response", tabindex: "-1" }, el("div", { class: "line" }, el("h2", {}, "Response"), button("Close", close, { class: "plain" })), content);
let opener = null;

/** Shows the properties of the response at `url`, a fragment. The focus returns to `control` when the inspector closes. */
export async function show(url, control) {
  await styled;
  const shown = opener === control && panel.isConnected;
  close();
  if (shown) return;
  opener = control;
  control.setAttribute("aria-expanded", "true");
  document.querySelector("main").append(panel);
  await load(url);
}

async function load(url) {
  const control = opener;
  content.replaceChildren(el("p", { class: "skeleton" }));
  panel.focus({ preventScroll: true });
  const { page, reason } = await fetchPage(url);
  if (opener !== control) return;
  const fragment = page?.body.firstElementChild;
  content.replaceChildren(fragment ?? notice("The inspector", reason, () => load(url)));
  if (fragment) start(fragment);
  document.dispatchEvent(new Event("fresh"));
}

function close() {
  if (!panel.isConnected) return;
  panel.remove();
  opener?.setAttribute("aria-expanded", "false");
  opener?.focus({ preventScroll: true });
  opener = null;
}

// Esc closes the inspector first; the next Esc stops the response.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !panel.isConnected || document.querySelector("dialog[open], details.menu[open]")) return;
  event.preventDefault();
  close();
}, true);
