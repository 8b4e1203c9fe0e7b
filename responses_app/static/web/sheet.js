// Sheet at the right of the list with the page of a response: the server's own HTML, fetched and shown.
import { icon } from "./icon.js";
import { fetchPage, notice } from "./page_part.js";

const sheet = document.createElement("aside");
sheet.className = "sheet";
sheet.setAttribute("role", "dialog");
sheet.setAttribute("aria-label", "Response");
sheet.tabIndex = -1;
let current = null;

/** Opens the response at `url`; a second call shows another response in the same sheet, and in the same entry of the history. */
export async function show(url) {
  const { pathname } = new URL(url, location.href);
  const address = `${location.pathname}${location.search}#${pathname.split("/").at(-1)}`;
  // The address of a reloaded or shared page names the response already.
  if (sheet.isConnected || location.hash) history.replaceState(history.state, "", address);
  else history.pushState({ sheet: true }, "", address);
  current = pathname;
  mark(pathname);
  if (!sheet.isConnected) {
    document.querySelector("main").append(sheet);
    addStyle();
  }
  sheet.replaceChildren(bar(pathname), placeholder());
  sheet.focus({ preventScroll: true });
  const { page, reason } = await fetchPage(pathname);
  if (current !== pathname) return;
  const part = page?.querySelector("#response");
  part?.querySelector(".crumb")?.remove();
  sheet.lastElementChild.replaceWith(part ?? notice("This response", reason, () => show(pathname)));
  sheet.scrollTop = 0;
  if (part?.querySelector(".markdown")) import("./markdown/enhance.js").then(({ enhance }) => enhance(part));
}

function close() {
  const isPushed = history.state?.sheet;
  remove();
  if (isPushed) history.back();
  else history.replaceState(history.state, "", location.pathname + location.search);
}

function remove() {
  const row = document.querySelector("#rows .showing a.open");
  current = null;
  mark(null);
  sheet.remove();
  row?.focus({ preventScroll: true });
}

function mark(pathname) {
  for (const row of document.querySelectorAll("#rows .showing")) row.classList.remove("showing");
  if (pathname) document.querySelector(`#rows a[href="${CSS.escape(pathname)}"]`)?.closest("tr").classList.add("showing");
}

function bar(pathname) {
  const line = document.createElement("div");
  line.className = "bar";
  const link = document.createElement("a");
  link.href = pathname;
  link.textContent = "Open page";
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", "Close");
  button.append(icon("close"));
  button.addEventListener("click", close);
  line.append(link, button);
  return line;
}

function placeholder() {
  const box = document.createElement("p");
  box.className = "skeleton";
  return box;
}

// The styles of the response page are loaded with the first response.
function addStyle() {
  if (document.querySelector('link[href*="response.css"]')) return;
  const { href } = document.querySelector('link[href*="list.css"]');
  for (const name of ["inspect.css", "response.css", "items.css", "markdown/markdown.css"]) {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = href.replace("list.css", name);
    document.head.append(link);
  }
}

// The back button closes the sheet, and the forward button opens it.
addEventListener("popstate", () => {
  if (location.hash) show(`${location.pathname}/${location.hash.slice(1)}`);
  else if (sheet.isConnected) remove();
});

// Esc closes the sheet; j and k show the neighbour of the shown row.
document.addEventListener("keydown", (event) => {
  if (!sheet.isConnected || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "Escape") close();
  else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("#rows tbody tr:has(a.open)")];
    const place = rows.findIndex((row) => row.matches(".showing")) + (event.key === "j" ? 1 : -1);
    const link = rows[place]?.querySelector("a.open");
    if (link) show(link.href);
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
