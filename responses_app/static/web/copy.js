// Buttons that copy the text of an element; hidden without a clipboard API.

const SHOWN_MS = 2000;

/** Shows the buttons, also those that came after the page. */
export function showCopyButtons() {
  if (navigator.clipboard) for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
  // An icon, a text behind it, or both.
  const use = button.querySelector("use");
  const before = use?.getAttribute("href");
  use?.setAttribute("href", before.replace(/#.*/, "#check"));
  const label = button.lastChild;
  const text = label.data;
  if (text) label.data = " Copied";
  setTimeout(() => {
    use?.setAttribute("href", before);
    if (text) label.data = text;
  }, SHOWN_MS);
});
showCopyButtons();
