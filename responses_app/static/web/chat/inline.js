// What stands inside a line of Markdown: code, bold, italic, links, line breaks.
import { el } from "./dom.js";

// Longer runs stay plain: every mark that opens and does not close costs a look at the rest.
const LONGEST = 10_000;
const DEEPEST = 4;
const URL_END = /[.,;:!?'"]+$/;

const MARKS = new RegExp(
  [
    String.raw`(?<code>\x60[^\x60\n]+\x60)`,
    String.raw`\*\*(?=\S)(?<bold>(?:(?!\*\*)[\s\S])+)\*\*`,
    String.raw`(?<!\w)_(?=\S)(?<under>[^_\n]+)_(?!\w)`,
    String.raw`\*(?=[^\s*])(?<italic>[^*\n]+)\*`,
    String.raw`~~(?=\S)(?<struck>[^~\n]+)~~`,
    String.raw`\[(?<text>[^\]\n]+)\]\((?<href>https?:\/\/[^\s)]+)\)`,
    String.raw`(?<bare>https?:\/\/[^\s<>()\[\]\x60*]+)`,
    String.raw`\\(?<escaped>[\\\x60*_{}\[\]()#+\-.!|>~])`,
  ].join("|"),
  "g",
);

const MAKERS = {
  code: (text) => [el("code", {}, text.slice(1, -1))],
  bold: (text, depth) => [el("strong", {}, ...inline(text, depth))],
  under: (text, depth) => [el("em", {}, ...inline(text, depth))],
  italic: (text, depth) => [el("em", {}, ...inline(text, depth))],
  struck: (text, depth) => [el("s", {}, ...inline(text, depth))],
  bare: (text) => {
    const end = URL_END.exec(text)?.[0] ?? "";
    const href = text.slice(0, text.length - end.length);
    return [link(href, [href]), end];
  },
  escaped: (text) => [text],
};

export function inline(text, depth = 0) {
  if (text.length > LONGEST || depth > DEEPEST) return [text];
  const made = [];
  let at = 0;
  for (const found of text.matchAll(MARKS)) {
    made.push(text.slice(at, found.index), ...marked(found.groups, depth + 1));
    at = found.index + found[0].length;
  }
  return [...made, text.slice(at)].filter((one) => one !== "");
}

function marked(groups, depth) {
  if (groups.href) return [link(groups.href, inline(groups.text, DEEPEST))];
  const kind = Object.keys(MAKERS).find((name) => groups[name] !== undefined);
  return MAKERS[kind](groups[kind], depth);
}

// The address is told beside its name, as a model may have been made to write one that misleads.
function link(href, children) {
  return el("a", { href, title: href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}
