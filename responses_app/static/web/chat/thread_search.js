// Search and paging of the list of conversations, without leaving the open conversation.

const FAILED = "Couldn’t load conversations. Try again.";

export async function search(threads) {
  const words = threads.element.querySelector("[name=q]").value.trim();
  const url = new URL(location.href);
  url.searchParams.delete("before");
  if (words) url.searchParams.set("q", words);
  else url.searchParams.delete("q");
  history.replaceState(history.state, "", url);
  const fresh = await threads.fetchList({ q: words });
  if (!fresh) return announce(threads, FAILED);
  threads.list.replaceWith(fresh);
  threads.mark();
  const count = fresh.querySelectorAll("a:not(.older)").length;
  const more = fresh.querySelector(".older") ? "+" : "";
  announce(threads, words && count ? `${count}${more} ${count === 1 ? "result" : "results"}` : "");
}

export async function older(threads, link) {
  const fresh = await threads.fetchList(Object.fromEntries(new URL(link.href).searchParams));
  if (!fresh) return announce(threads, FAILED);
  const added = [...fresh.querySelectorAll("li")];
  threads.list.querySelector("ul").append(...added);
  threads.list.dataset.plain = "0";
  link.replaceWith(...[fresh.querySelector(".older")].filter(Boolean));
  threads.mark();
  added[0]?.querySelector("a")?.focus();
}

function announce(threads, text) {
  threads.element.querySelector("[role=status]").textContent = text;
}
