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
    if (link) save({ url, row: link.getAttribute("href"), label: filterLabel(), all: [...document.querySelectorAll(rows)].map((one) => one.getAttribute("href")) });
  });
}

function focusRow(href) {
  const link = href && document.querySelector(`#rows a[href="${CSS.escape(href)}"]`);
  link?.focus();
  link?.scrollIntoView({ block: "center" });
}

// The chosen filters in words, empty without one.
function filterLabel() {
  const form = document.querySelector("form.filters");
  const status = form.elements.status.selectedOptions[0];
  const { q, model, since } = Object.fromEntries(new FormData(form));
  return [status.value && status.textContent.trim(), model, since && `last ${since}`.replace(/^last (?=\d{4}-|[ty])/, "since "), q && `“${q}”`].filter(Boolean).join(", ");
}

/** Point the page's back link to the saved list. Returns a function that follows the link. */
export function backLink() {
  const link = document.querySelector("a[data-back]");
  if (link?.dataset.back === "list" && saved()) {
    link.href = saved().url;
    if (saved().label) link.lastChild.data = ` ${saved().label}`;
    if (saved().all) import("./list_place.js").then(({ showPlace }) => showPlace(link.parentElement, saved(), save));
    link.addEventListener("click", () => save({ ...saved(), returning: true }));
  }
  return link ? () => link.click() : undefined;
}
