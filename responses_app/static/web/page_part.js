// Parts of a page that are fetched from other pages: the document, or what happened, with a button to load the part again.
import { button, el } from "./chat/dom.js";

const REASONS = {
  403: "You don’t have access to it any more.",
  404: "It was deleted, or isn’t in one of your projects any more.",
  503: "The server can’t reach its database.",
};

/** Fetches the page at `url`. Returns its document, or null and the reason, a sentence. */
export async function fetchPage(url) {
  const response = await fetch(url, { headers: { Accept: "text/html" }, redirect: "manual" }).catch(() => null);
  if (response?.ok) return { page: new DOMParser().parseFromString(await response.text(), "text/html") };
  if (!response) return { page: null, reason: "The server can’t be reached." };
  if (response.type === "opaqueredirect") return { page: null, reason: "You’ve been signed out. Sign in again in another tab." };
  return { page: null, reason: REASONS[response.status] ?? `The server had an error (HTTP ${response.status}), which its log has.` };
}

/** The notice in place of a part. */
export function notice(subject, reason, again) {
  return el("p", { class: "bad", role: "alert" }, `${subject} can’t be loaded. ${reason ?? ""} `, button("Try again", again));
}
