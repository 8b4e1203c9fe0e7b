// The whole of a long text, loaded by its link.
import { fetchFragment } from "./items.js";
import { colour } from "./markdown/enhance.js";
import { morph } from "./morph.js";

/** Shows the whole text of a part in the box before its `link`. A text that does not come is opened, which shows the reason. */
export async function show(link) {
  const message = link.closest("[data-item].message");
  if (message) {
    const fresh = await fetchFragment(new URL("fragment?whole", link.href));
    return fresh && morph(message, fresh);
  }
  const response = await fetch(link.href, { redirect: "error" }).catch(() => null);
  if (!response?.ok) return location.assign(link.href);
  const before = link.parentElement.previousElementSibling;
  const box = before.querySelector("pre") ?? before;
  const code = box.querySelector("code");
  (code ?? box.lastChild).textContent = await response.text();
  if (code) await colour(code, box.dataset.language);
  if (before.tagName === "DETAILS") before.open = true;
  link.parentElement.remove();
  box.focus({ preventScroll: true });
}
