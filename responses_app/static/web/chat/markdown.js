// Markdown as elements of our own making: what is not understood stays text, and a link leads to http or https alone.
import { el, visible } from "./dom.js";
import { inline } from "./inline.js";

// Longer texts stay plain: nobody reads them, and laying them out would stop the page.
export const LONGEST = 300_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ENTRY = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;
// By whether the divider of a column has a colon at its left and its right end.
const SIDES = { "true false": "left", "false true": "right", "true true": "center" };

export const container = () => el("div", { class: "markdown", dir: "auto" });

export function markdown(text) {
  const made = container();
  if (text.length > LONGEST) made.append(el("pre", {}, visible(text)));
  else made.append(...blocks(visible(text).split("\n"), 0));
  return made;
}

// Each reader takes lines from `at` on and gives [element, next line], or null where the lines are none of its kind.
const READERS = [fence, heading, rule, quote, list, table, paragraph];

const blocks = (lines, depth) => parse(lines, depth).map(([element]) => element);

// Each block as [element, number of the line behind it].
export function parse(lines, depth = 0) {
  const made = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at].trim() === "") at += 1;
    else {
      const readers = depth < DEEPEST ? READERS : [paragraph];
      const found = readers.reduce((block, reader) => block ?? reader(lines, at, depth), null);
      made.push(found);
      at = found[1];
    }
  }
  return made;
}

function fence(lines, at) {
  const opened = FENCE.exec(lines[at]);
  if (!opened) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(opened[1])) end += 1;
  const code = el("code", { "data-language": opened[2] || null }, lines.slice(at + 1, end).join("\n"));
  // Wide code scrolls, and what scrolls must be reachable by keyboard.
  return [el("pre", { tabindex: "0", dir: "ltr" }, code), end + 1];
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  // The page has h1 and h2 of its own.
  return found && [el(`h${Math.min(found[1].length + 2, 6)}`, {}, ...inline(found[2])), at + 1];
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
    const found = ENTRY.exec(lines[end]);
    if (found && found[1].length <= margin.length) {
      if (/\d/.test(found[2]) !== ordered || found[1].length < margin.length) break;
      entries.push([found[3]]);
    } else if (lines[end].trim() === "") {
      // An empty line goes on with the list only where the next one does.
      if (!ENTRY.test(lines[end + 1] ?? "") && !/^\s{2,}\S/.test(lines[end + 1] ?? "")) break;
      entries.at(-1).push("");
    } else if (found || /^\s{2,}/.test(lines[end])) {
      entries.at(-1).push(lines[end].slice(Math.min(margin.length + 2, lines[end].search(/\S/))));
    } else break;
  }
  const start = ordered && parseInt(sign, 10) !== 1 ? parseInt(sign, 10) : null;
  const made = entries.map((entry) => el("li", {}, ...unwrapped(blocks(entry, depth + 1))));
  return [el(ordered ? "ol" : "ul", { start }, ...made), end];
}

// A single paragraph in a list is just its text.
function unwrapped(made) {
  return made[0]?.tagName === "P" ? [...made[0].childNodes, ...made.slice(1)] : made;
}

const opensTable = (lines, at) => lines[at].includes("|") && DIVIDER.test(lines[at + 1] ?? "") && cells(lines[at]).length === cells(lines[at + 1]).length;

function table(lines, at) {
  if (!opensTable(lines, at)) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  // Classes, as the policy of the pages allows no styles.
  const sides = cells(lines[at + 1]).map((cell) => SIDES[`${cell.startsWith(":")} ${cell.endsWith(":")}`]);
  const row = (line, tag) => el("tr", {}, ...sides.map((side, place) => el(tag, { class: side }, ...inline(cells(line)[place] ?? ""))));
  const body = lines.slice(at + 2, end).map((line) => row(line, "td"));
  const made = el("table", {}, el("thead", {}, row(lines[at], "th")), el("tbody", {}, ...body));
  return [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, made), end];
}

function cells(line) {
  return line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !opensTable(lines, end) && ![FENCE, HEADING, QUOTE, ENTRY].some((sign) => sign.test(lines[end]))) end += 1;
  return [el("p", {}, ...inline(lines.slice(at, end).join("\n"))), end];
}
