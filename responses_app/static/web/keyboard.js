// Keyboard navigation: j and k move in a list, / focuses the search field, Esc closes a menu or goes back.

const isTextField = (target) => target.closest("input, textarea, select, [contenteditable]");

export function keyboard({ links, search, back }) {
  const act = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      const menu = document.querySelector("details.menu[open]");
      if (menu) (menu.open = false, menu.querySelector("summary").focus());
      else if (isTextField(event.target) || document.activeElement?.matches(links)) document.activeElement.blur();
      else if (back) back();
      return;
    }
    if (isTextField(event.target)) return;
    if (event.key === "j" || event.key === "k") move(links, event.key === "j" ? 1 : -1);
    else if (event.key === "/" && search) document.querySelector(search)?.focus();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", act);
  const early = window.earlyKeys ?? [];
  window.earlyKeys = null;
  for (const event of early) {
    const { activeElement } = document;
    // The key went to the page, and not to the element that an earlier key has now focused.
    if (event.target !== document.body || activeElement === document.body) act(event);
    else if (isTextField(activeElement)) type(activeElement, event.key);
    else if (event.key === "Enter") activeElement.click();
    else act(event);
  }
}

function type(field, key) {
  if (key === "Enter") field.form?.requestSubmit();
  else if (key.length === 1) field.setRangeText(key, field.selectionStart, field.selectionEnd, "end");
}

function move(selector, step) {
  const all = [...document.querySelectorAll(selector)];
  const current = all.indexOf(document.activeElement);
  const next = current < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(current + step, 0), all.length - 1);
  all[next]?.focus();
  all[next]?.scrollIntoView({ block: "nearest" });
}
