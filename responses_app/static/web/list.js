// Response list: keyboard, URLs without empty filters, live updates.

import { rememberList } from "./back.js";
import "./filter_times.js";
import { keyboard } from "./keyboard.js";

// A click on a row, other than on a link or a box, opens the response beside the list.
document.addEventListener("click", async (event) => {
  const row = event.target.closest?.("#rows tbody tr");
  const link = row?.querySelector("a.open");
  if (!link || event.target.closest("a, input, button, label, .pick") || String(getSelection())) return;
  (await import("./sheet.js")).show(link.href);
});
document.querySelector("main").classList.add("opens");
if (location.hash.startsWith("#resp_")) import("./sheet.js").then(({ show }) => show(`${location.pathname}/${location.hash.slice(1)}`));

const POLL_MS = 2000;
const MAX_RETRY_MS = 30_000;
const TIMEOUT_MS = 15_000;

keyboard({ links: "#rows a.open", search: "[data-search]" });
rememberList("#rows a.open");

// Number of checked rows, and a button that checks all.
const selection = document.querySelector("#selection");
const boxes = () => [...document.querySelectorAll("#rows .pick input")];

function countChecked() {
  const count = boxes().filter((box) => box.checked).length;
  selection.querySelector("output").textContent = `${count} selected`;
  selection.querySelector("[value=compare]").disabled = count < 2;
}

const all = selection.querySelector("[data-all]");
all.hidden = false;
all.addEventListener("click", () => {
  for (const box of boxes()) box.checked = true;
  countChecked();
});
document.addEventListener("change", countChecked);
// Behind the boxes that the browser restores.
addEventListener("pageshow", countChecked);

document.querySelector("form.filters").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});

const connection = document.querySelector("#connection");
const toggle = document.querySelector("[data-live]");

// Shows a connection problem, or none for an empty text.
function showStatus(text, ...more) {
  if (connection.dataset.text === text) return;
  connection.dataset.text = text;
  connection.replaceChildren(text, ...more);
  toggle.classList.toggle("on", text === "");
  toggle.textContent = text === "" ? "● Live" : "○ Paused";
}

function signInLink() {
  const link = document.createElement("a");
  const next = encodeURIComponent(location.pathname + location.search);
  link.href = `${connection.dataset.signIn}?next=${next}`;
  link.textContent = "Sign in again";
  return link;
}

// Rows keep their elements by id, and so the focus and the scroll position. Ticks, the mark of the shown row and local times stay.
const KEEP_CHOICES = {
  beforeNodeMorphed: (node, next) => !node.matches?.(".pick input") && !(node.matches?.("time") && node.dateTime === next.dateTime),
  beforeAttributeUpdated: (name, node) => name !== "class" || !node.classList.contains("showing"),
};

function withIds(rows) {
  for (const link of rows.querySelectorAll("tbody a.open")) link.closest("tr").id = link.getAttribute("href");
  return rows;
}

/** Reload the rows. Returns false if the session has ended. Throws if the request fails. */
async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.redirected && new URL(response.url).pathname !== location.pathname) return false;
  if (!response.ok) throw new Error(String(response.status));
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const { Idiomorph } = await import("./vendor/idiomorph.js");
  Idiomorph.morph(withIds(document.querySelector("#rows")), withIds(page.querySelector("#rows")), { callbacks: KEEP_CHOICES });
  countChecked();
  return true;
}

async function poll() {
  for (let wait = POLL_MS; ; ) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (document.hidden) continue;
    try {
      if (!(await refresh())) return showStatus("Your session has ended. ", signInLink());
      showStatus("");
      wait = POLL_MS;
    } catch {
      showStatus("Connection lost. Reconnecting…");
      wait = Math.min(wait * 2, MAX_RETRY_MS);
    }
  }
}

if (toggle) {
  connection.dataset.text = "";
  poll();
  // Retry at once when the network is back.
  addEventListener("online", () => refresh().then((signedIn) => signedIn && showStatus(""), () => {}));
}
