// Colours of JSON, SSE lines and code, and folds in JSON. The text of an element stays the same.
import { colour } from "./enhance.js";

// Longer text stays without colours.
const MAX_CHARS = 60_000;
const TOKENS = /("(?:[^"\\]|\\.)*"?)(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function span(className, text) {
  return Object.assign(document.createElement("span"), { className, textContent: text });
}

/** Appends a line of JSON to `element`, each token with the class of highlight.js. */
function appendJson(element, line) {
  let after = 0;
  for (const match of line.matchAll(TOKENS)) {
    const [token, string, colon] = match;
    element.append(line.slice(after, match.index));
    after = match.index + token.length;
    if (colon) element.append(span("hljs-attr", string), colon);
    else element.append(span(string ? "hljs-string" : /[a-z]/.test(token[0]) ? "hljs-literal" : "hljs-number", token));
  }
  element.append(line.slice(after));
}

// Of indented JSON: a line that ends with a bracket begins a fold, and a line that begins with one ends it.
function foldJson(block) {
  const text = block.textContent;
  if (text.length > MAX_CHARS) return;
  const root = document.createElement("div");
  const folds = [root];
  for (const line of text.split("\n")) {
    const opens = /[[{]$/.test(line);
    const row = document.createElement(opens ? "summary" : "div");
    appendJson(row, `${line}\n`);
    if (opens) {
      const fold = document.createElement("details");
      fold.open = true;
      fold.append(row);
      folds.at(-1).append(fold);
      folds.push(fold);
    } else {
      folds.at(-1).append(row);
      if (/^\s*[\]}]/.test(line) && folds.length > 1) folds.pop().firstChild.dataset.close = line.trim();
    }
  }
  block.replaceChildren(...root.childNodes);
}

function colourSse(block) {
  let left = MAX_CHARS;
  for (const node of [...block.childNodes]) {
    if (node.nodeType !== Node.TEXT_NODE || (left -= node.length) < 0) continue;
    const fragment = document.createDocumentFragment();
    for (const line of node.data.split(/(?<=\n)/)) {
      const field = line.match(/^(?:event|data):/)?.[0] ?? "";
      if (field) fragment.append(span("hljs-keyword", field));
      if (field === "data:") appendJson(fragment, line.slice(field.length));
      else fragment.append(line.slice(field.length));
    }
    node.replaceWith(fragment);
  }
}

/** Takes the blocks of the page that have no colours yet. */
export function enhanceSource() {
  for (const block of document.querySelectorAll("pre[data-json]")) if (!block.firstElementChild) foldJson(block);
  for (const block of document.querySelectorAll("pre.wire")) if (!block.querySelector("span")) colourSse(block);
  for (const block of document.querySelectorAll("pre[data-code]")) {
    const fold = block.closest("details");
    fold.addEventListener("toggle", () => colour(block, block.dataset.code), { once: true });
  }
}
