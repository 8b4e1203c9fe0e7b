// The response list: keyboard, addresses without empty filters, and new rows while it is live.

import { rememberList } from "./back.js";
import { keyboard } from "./keys.js";

const EVERY_MS = 2000;
const LONGEST_MS = 30_000;
const ANSWER_MS = 15_000;

keyboard({ links: "#rows a.open", search: "[data-search]" });
rememberList("#rows a.open");

document.querySelector("form.filters").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});

const connection = document.querySelector("#connection");
const toggle = document.querySelector("[data-live]");

// What the page says of its connection; nothing while all is well.
function tell(text, ...more) {
  if (connection.dataset.said === text) return;
  connection.dataset.said = text;
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

/** Show the rows as they are now. Returns false when the session has ended. Throws if the server does not answer. */
async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(ANSWER_MS) });
  if (answer.redirected && new URL(answer.url).pathname !== location.pathname) return false;
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focused = document.activeElement?.closest("#rows") ? document.activeElement.getAttribute("href") : null;
  const left = document.querySelector("#rows .scroll")?.scrollLeft ?? 0;
  document.querySelector("#rows").replaceWith(page.querySelector("#rows"));
  const scroll = document.querySelector("#rows .scroll");
  if (scroll) scroll.scrollLeft = left;
  if (focused) document.querySelector(`#rows a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  return true;
}

async function follow() {
  for (let wait = EVERY_MS; ; ) {
    await new Promise((later) => setTimeout(later, wait));
    if (document.hidden) continue;
    try {
      if (!(await renew())) return tell("Your session has ended. ", signInLink());
      tell("");
      wait = EVERY_MS;
    } catch {
      tell("Connection lost. Reconnecting…");
      wait = Math.min(wait * 2, LONGEST_MS);
    }
  }
}

if (toggle) {
  connection.dataset.said = "";
  follow();
  // When the network is back, the next attempt need not wait.
  addEventListener("online", () => renew().then((there) => there && tell(""), () => {}));
}
