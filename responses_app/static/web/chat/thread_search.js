// Search, paging and refresh of the list of conversations, without leaving the open conversation.

const FAILED = "Couldn’t load conversations. Try again.";

export async function search(threads) {
  const words = threads.element.querySelector("[name=q]").value.trim();
  const url = new URL(location.href);
  url.searchParams.delete("before");
  if (words) url.searchParams.set("q", words);
  else url.searchParams.delete("q");
  history.replaceState(history.state, "", url);
  const fresh = await fetchList(threads, { q: words });
  if (!fresh) return announce(threads, FAILED);
  threads.list.replaceWith(fresh);
  threads.mark();
  const count = fresh.querySelectorAll("li:not(.quiet)").length;
  const more = fresh.querySelector(".older") ? "+" : "";
  announce(threads, words && count ? `${count}${more} ${count === 1 ? "result" : "results"}` : "");
}

export async function older(threads, link) {
  const fresh = await fetchList(threads, Object.fromEntries(new URL(link.href).searchParams));
  if (!fresh) return announce(threads, FAILED);
  const added = [...fresh.querySelectorAll("li")];
  for (const heading of [...fresh.querySelectorAll("h2")]) append(threads.list, heading, heading.nextElementSibling, link);
  threads.list.dataset.plain = "0";
  link.replaceWith(...[fresh.querySelector(".older")].filter(Boolean));
  threads.mark();
  added[0]?.querySelector("a")?.focus();
}

// After a new response or a changed title. Search results and older pages are not replaced.
export async function refresh(threads) {
  if (threads.list.dataset.plain !== "1" || threads.query) return;
  const fresh = await fetchList(threads, {});
  const focused = document.activeElement.closest(".threads a")?.getAttribute("href");
  if (fresh) threads.list.replaceWith(fresh);
  threads.mark();
  if (focused) threads.list.querySelector(`[href="${focused}"]`)?.focus();
}

// The list from the server, or null after a failure or a newer request.
async function fetchList(threads, query) {
  const token = (threads.latest = {});
  const url = `${threads.list.dataset.url}&${new URLSearchParams(query)}`;
  const response = await fetch(url, { redirect: "error" }).catch(() => null);
  const text = response?.ok ? await response.text() : null;
  if (token !== threads.latest || text === null) return null;
  // The server's template escapes every title, and DOMParser runs no scripts.
  return document.adoptNode(new DOMParser().parseFromString(text, "text/html").querySelector(".threads"));
}

// Adds a group of older conversations: to the last group, if it has the same heading.
function append(list, heading, entries, link) {
  const last = [...list.querySelectorAll("h2")].at(-1);
  if (last?.dataset.group === heading.dataset.group) last.nextElementSibling.append(...entries.children);
  else link.before(heading, entries);
}

function announce(threads, text) {
  threads.element.querySelector("[role=status]").textContent = text;
}
