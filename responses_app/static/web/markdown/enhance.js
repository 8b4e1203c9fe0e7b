// Copy buttons and colours of code, and typeset math, in Markdown of the server and of markdown.js. Modules come on first use.
import { icon } from "../icon.js";

const SHOWN_MS = 2000;
// Longer code stays without colours.
const MAX_CODE_CHARS = 50_000;

/** Enhances the Markdown in `root`, once. Resolves when colours and math are there. */
export async function enhance(root) {
  const waiting = [];
  const all = (selector) => [...(root.matches(selector) ? [root] : []), ...root.querySelectorAll(selector)];
  for (const block of all("pre:has(> code):not(.enhanced)")) {
    block.classList.add("enhanced");
    addCopyButton(block);
    if (block.dataset.language) waiting.push(colour(block.firstChild, block.dataset.language));
  }
  const formulas = all(".math:not(.typeset)");
  if (formulas.length) waiting.push(typeset(formulas));
  await Promise.all(waiting);
}

function addCopyButton(block) {
  if (!navigator.clipboard) return;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy plain", title: "Copy" });
  button.setAttribute("aria-label", "Copy code");
  button.append(icon("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.replaceChildren(icon("check"));
    setTimeout(() => button.replaceChildren(icon("copy")), SHOWN_MS);
  });
  block.append(button);
}

export async function colour(code, language) {
  if (code.textContent.length > MAX_CODE_CHARS) return;
  const { default: highlight } = await import("../vendor/highlight.js");
  // The result has escaped text and spans with classes.
  if (highlight.getLanguage(language)) code.innerHTML = highlight.highlight(code.textContent, { language, ignoreIllegals: true }).value;
}

async function typeset(formulas) {
  for (const formula of formulas) formula.classList.add("typeset");
  const { default: temml } = await import("../vendor/temml.js");
  for (const formula of formulas) {
    const source = formula.textContent;
    // Without `trust` there are no links, classes or styles of the text. A wrong formula stays as its source.
    try {
      temml.render(source, formula, { displayMode: formula.classList.contains("display"), throwOnError: true, trust: false, maxExpand: 100, maxSize: [20, 20], annotate: false });
      formula.title = source;
    } catch {
      formula.textContent = source;
    }
  }
}
