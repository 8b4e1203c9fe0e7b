// The response list: keyboard, and new rows while it is live.

import { keyboard } from "./keys.js";

const EVERY_MS = 2000;

keyboard({ links: "#rows a.open", search: "[data-search]" });

async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focused = document.activeElement?.closest("#rows") ? document.activeElement.getAttribute("href") : null;
  const left = document.querySelector("#rows .scroll")?.scrollLeft ?? 0;
  document.querySelector("#rows").replaceWith(page.querySelector("#rows"));
  const scroll = document.querySelector("#rows .scroll");
  if (scroll) scroll.scrollLeft = left;
  if (focused) document.querySelector(`#rows a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

async function follow() {
  for (;;) {
    await new Promise((later) => setTimeout(later, EVERY_MS));
    if (document.hidden) continue;
    try {
      await renew();
    } catch {
      // The server is away for a moment, or restarts.
    }
  }
}

if (document.querySelector("[data-live]")) follow();
