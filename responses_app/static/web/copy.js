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
  // The text behind the icon, if there is one.
  const label = button.lastChild;
  const before = label.data;
  label.data = " Copied";
  setTimeout(() => (label.data = before), SHOWN_MS);
});
showCopyButtons();
