// Buttons that copy the text of an element; hidden without a clipboard API.

const SHOWN_MS = 2000;

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
    // The text behind the icon, if there is one.
    const label = button.lastChild;
    const before = label.data;
    label.data = " Copied";
    setTimeout(() => (label.data = before), SHOWN_MS);
  });
}
