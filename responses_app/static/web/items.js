// Items: the server's HTML fragment of each, the only drawing.

/** The element of a fragment. The server has escaped all text, and DOMParser runs no scripts. */
export const parseFragment = (html) => document.adoptNode(new DOMParser().parseFromString(html, "text/html").body.firstElementChild);

export async function fetchFragment(url) {
  const response = await fetch(url, { redirect: "error" }).catch(() => null);
  return response?.ok ? parseFragment(await response.text()) : null;
}

/** Colours the code and typesets the math of Markdown in `element`. Resolves when that is done. */
export async function enhanced(element) {
  if (element.querySelector(".markdown, pre[data-language]")) await (await import("./markdown/enhance.js")).enhance(element);
}

// Long texts end with a link to the whole text, which a script shows in place.
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a.whole");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  (await import("./whole_text.js")).show(link);
});
