// Return to the response list with the filters, page and focused row of this tab.

const KEY = "verbatim:list";

const saved = () => JSON.parse(sessionStorage.getItem(KEY) ?? "null");
const save = (state) => sessionStorage.setItem(KEY, JSON.stringify(state));

/** Save the URL of the list and the row that the user opens. */
export function rememberList(rows) {
  const url = location.pathname + location.search;
  const before = saved();
  if (before?.returning && before.url === url) focusRow(before.row);
  save({ url });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(rows);
    if (link) save({ url, row: link.getAttribute("href") });
  });
}

function focusRow(href) {
  const link = href && document.querySelector(`#rows a[href="${CSS.escape(href)}"]`);
  link?.focus();
  link?.scrollIntoView({ block: "center" });
}

/** Point the page's back link to the saved list. Returns a function that follows the link. */
export function backLink() {
  const link = document.querySelector("a[data-back]");
  if (link?.dataset.back === "list" && saved()) {
    link.href = saved().url;
    link.addEventListener("click", () => save({ ...saved(), returning: true }));
  }
  return link ? () => link.click() : undefined;
}
