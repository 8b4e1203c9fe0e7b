// Markdown renderer with DOM elements: unknown syntax stays text, and links are http or https only.
import { el, visible } from "./dom.js";
import { inline } from "./inline.js";

// Longer texts stay plain: their layout would block the page.
export const MAX_CHARS = 300_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ENTRY = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 8;
// Column alignment by a colon at the left and the right end of the divider cell.
const ALIGNMENTS = { "true false": "left", "false true": "right", "true true": "center" };

export const container = () => el("div", { class: "markdown", dir: "auto" });

export function markdown(text) {
  const element = container();
  if (text.length > MAX_CHARS) element.append(el("pre", {}, visible(text)));
  else element.append(...blocks(visible(text).split("\n"), 0));
  return element;
}

// A block parser returns [element, number of the next line], or null if the lines from `at` on are a different kind of block.
const BLOCK_PARSERS = [fence, heading, rule, quote, list, table, paragraph];

const blocks = (lines, depth) => parse(lines, depth).map(([element]) => element);

// All blocks as [element, number of the next line].
export function parse(lines, depth = 0) {
  const parsed = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at].trim() === "") at += 1;
    else {
      const parsers = depth < MAX_DEPTH ? BLOCK_PARSERS : [paragraph];
      const block = parsers.reduce((result, parser) => result ?? parser(lines, at, depth), null);
      parsed.push(block);
      at = block[1];
    }
  }
  return parsed;
}

function fence(lines, at) {
  const opened = FENCE.exec(lines[at]);
  if (!opened) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(opened[1])) end += 1;
  const code = el("code", { "data-language": opened[2] || null }, lines.slice(at + 1, end).join("\n"));
  // A scrolling element must accept the keyboard focus.
  return [el("pre", { tabindex: "0", dir: "ltr" }, code), end + 1];
}

function heading(lines, at) {
  const match = HEADING.exec(lines[at]);
  // h1 and h2 are headings of the page.
  return match && [el(`h${Math.min(match[1].length + 2, 6)}`, {}, ...inline(match[2])), at + 1];
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? [el("hr"), at + 1] : null;
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  if (end === at) return null;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [el("blockquote", {}, ...blocks(inside, depth + 1)), end];
}

function list(lines, at, depth) {
  const first = ENTRY.exec(lines[at]);
  if (!first) return null;
  const [, margin, sign] = first;
  const ordered = /\d/.test(sign);
  const entries = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const match = ENTRY.exec(lines[end]);
    if (match && match[1].length <= margin.length) {
      if (/\d/.test(match[2]) !== ordered || match[1].length < margin.length) break;
      entries.push([match[3]]);
    } else if (lines[end].trim() === "") {
      // An empty line continues the list only if the next line does.
      if (!ENTRY.test(lines[end + 1] ?? "") && !/^\s{2,}\S/.test(lines[end + 1] ?? "")) break;
      entries.at(-1).push("");
    } else if (match || /^\s{2,}/.test(lines[end])) {
      entries.at(-1).push(lines[end].slice(Math.min(margin.length + 2, lines[end].search(/\S/))));
    } else break;
  }
  const start = ordered && parseInt(sign, 10) !== 1 ? parseInt(sign, 10) : null;
  const items = entries.map((entry) => el("li", {}, ...unwrap(blocks(entry, depth + 1))));
  return [el(ordered ? "ol" : "ul", { start }, ...items), end];
}

// Unwrap the first paragraph of a list item.
function unwrap(elements) {
  return elements[0]?.tagName === "P" ? [...elements[0].childNodes, ...elements.slice(1)] : elements;
}

const opensTable = (lines, at) => lines[at].includes("|") && DIVIDER.test(lines[at + 1] ?? "") && cells(lines[at]).length === cells(lines[at + 1]).length;

function table(lines, at) {
  if (!opensTable(lines, at)) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  // Classes, because the Content-Security-Policy forbids inline styles.
  const alignments = cells(lines[at + 1]).map((cell) => ALIGNMENTS[`${cell.startsWith(":")} ${cell.endsWith(":")}`]);
  const row = (line, tag) => el("tr", {}, ...alignments.map((alignment, column) => el(tag, { class: alignment }, ...inline(cells(line)[column] ?? ""))));
  const body = lines.slice(at + 2, end).map((line) => row(line, "td"));
  const element = el("table", {}, el("thead", {}, row(lines[at], "th")), el("tbody", {}, ...body));
  return [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, element), end];
}

function cells(line) {
  return line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !opensTable(lines, end) && ![FENCE, HEADING, QUOTE, ENTRY].some((pattern) => pattern.test(lines[end]))) end += 1;
  return [el("p", {}, ...inline(lines.slice(at, end).join("\n"))), end];
}
