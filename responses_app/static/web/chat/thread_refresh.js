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
export async function fetchList(threads, query) {
  const token = (threads.latest = {});
  const url = `${threads.list.dataset.url}&${new URLSearchParams(query)}`;
  const response = await fetch(url, { redirect: "error" }).catch(() => null);
  const text = response?.ok ? await response.text() : null;
  if (token !== threads.latest || text === null) return null;
  // The server's template escapes every title, and DOMParser runs no scripts.
  return document.adoptNode(new DOMParser().parseFromString(text, "text/html").querySelector(".threads"));
}
