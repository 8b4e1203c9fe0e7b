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

/** Takes the fragment of the server at `url` in place of `element`. */
export async function replaceFragment(element, url) {
  const fresh = await fetchFragment(url);
  if (fresh) await (await import("./morph.js")).morph(element, fresh);
}

// Long texts end with a link to the JSON of the item, which a script replaces by the whole text.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.whole");
  const element = link?.closest("[data-item].message");
  if (!element || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  replaceFragment(element, `${link.href}/fragment?whole`);
});
