// The way back to the response list: its filters, its page and the row that was opened, as this tab has left them.

const KEY = "verbatim:list";

const saved = () => JSON.parse(sessionStorage.getItem(KEY) ?? "null");
const save = (state) => sessionStorage.setItem(KEY, JSON.stringify(state));

/** Remember this page of the list, and the row that is opened from it. */
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

/** Lead the page's link back to the list as it was left. Returns a function that follows the link. */
export function backLink() {
  const link = document.querySelector("a[data-back]");
  if (link?.dataset.back === "list" && saved()) {
    link.href = saved().url;
    link.addEventListener("click", () => save({ ...saved(), returning: true }));
  }
  return link ? () => link.click() : undefined;
}
