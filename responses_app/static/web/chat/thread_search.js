// Search and paging of the list of conversations, without leaving the open conversation.
import { fetchList } from "./thread_refresh.js";

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

// Adds a group of older conversations: to the last group, if it has the same heading.
function append(list, heading, entries, link) {
  const last = [...list.querySelectorAll("h2")].at(-1);
  if (last?.dataset.group === heading.dataset.group) last.nextElementSibling.append(...entries.children);
  else link.before(heading, entries);
}

function announce(threads, text) {
  threads.element.querySelector("[role=status]").textContent = text;
}
