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

/** Shows the whole text of a part in the box before its `link`. A text that does not come is opened, which shows the reason. */
async function showWhole(link) {
  const response = await fetch(link.href, { redirect: "error" }).catch(() => null);
  if (!response?.ok) return location.assign(link.href);
  const before = link.parentElement.previousElementSibling;
  const box = before.querySelector("pre") ?? before;
  const code = box.querySelector("code");
  (code ?? box.lastChild).textContent = await response.text();
  if (code) await (await import("./markdown/enhance.js")).colour(code, box.dataset.language);
  if (before.tagName === "DETAILS") before.open = true;
  link.parentElement.remove();
  box.focus({ preventScroll: true });
}

// Long texts end with a link to the whole text, which a script shows in place.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.whole");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const message = link.closest("[data-item].message");
  if (message) replaceFragment(message, new URL("fragment?whole", link.href));
  else showWhole(link);
});
