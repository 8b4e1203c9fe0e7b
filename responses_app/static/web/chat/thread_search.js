// Searching the conversations and reading further down, without leaving the open one.

const FAILED = "Couldn’t load conversations. Try again.";

export async function search(threads) {
  const words = threads.element.querySelector("[name=q]").value.trim();
  const here = new URL(location.href);
  here.searchParams.delete("before");
  if (words) here.searchParams.set("q", words);
  else here.searchParams.delete("q");
  history.replaceState(history.state, "", here);
  const fresh = await threads.fetched({ q: words });
  if (!fresh) return say(threads, FAILED);
  threads.list.replaceWith(fresh);
  threads.mark();
  const count = fresh.querySelectorAll("a:not(.older)").length;
  const more = fresh.querySelector(".older") ? "+" : "";
  say(threads, words && count ? `${count}${more} ${count === 1 ? "result" : "results"}` : "");
}

export async function older(threads, link) {
  const fresh = await threads.fetched(Object.fromEntries(new URL(link.href).searchParams));
  if (!fresh) return say(threads, FAILED);
  const added = [...fresh.querySelectorAll("li")];
  threads.list.querySelector("ul").append(...added);
  threads.list.dataset.plain = "0";
  link.replaceWith(...[fresh.querySelector(".older")].filter(Boolean));
  threads.mark();
  added[0]?.querySelector("a")?.focus();
}

function say(threads, text) {
  threads.element.querySelector("[role=status]").textContent = text;
}
