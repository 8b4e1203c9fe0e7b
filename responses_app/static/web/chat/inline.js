// Inline Markdown: code, bold, italic, strikethrough, links.
import { el } from "./dom.js";

// Longer texts stay plain: each unclosed mark costs a scan of the rest.
const MAX_CHARS = 10_000;
const MAX_DEPTH = 4;
const URL_END = /[.,;:!?'"]+$/;

const MARKS = new RegExp(
  [
    String.raw`(?<code>\x60[^\x60\n]+\x60)`,
    String.raw`\*\*(?=\S)(?<bold>(?:(?!\*\*)[\s\S])+)\*\*`,
    String.raw`(?<!\w)_(?=\S)(?<under>[^_\n]+)_(?!\w)`,
    String.raw`\*(?=[^\s*])(?<italic>[^*\n]+)\*`,
    String.raw`~~(?=\S)(?<struck>[^~\n]+)~~`,
    String.raw`\[(?<text>[^\]\n]+)\]\((?<href>https?:\/\/[^\s)]+|\/(?:containers|files)\/[\w%.\/-]+\/content)\)`,
    String.raw`(?<bare>https?:\/\/[^\s<>()\[\]\x60*]+)`,
    String.raw`\\(?<escaped>[\\\x60*_{}\[\]()#+\-.!|>~])`,
  ].join("|"),
  "g",
);

const RENDERERS = {
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
  if (text.length > MAX_CHARS || depth > MAX_DEPTH) return [text];
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(MARKS)) {
    nodes.push(text.slice(at, match.index), ...render(match.groups, depth + 1));
    at = match.index + match[0].length;
  }
  return [...nodes, text.slice(at)].filter((node) => node !== "");
}

function render(groups, depth) {
  if (groups.href) return [link(groups.href, inline(groups.text, MAX_DEPTH))];
  const kind = Object.keys(RENDERERS).find((name) => groups[name] !== undefined);
  return RENDERERS[kind](groups[kind], depth);
}

// The title shows the real address, because the text of a link may mislead.
export function link(href, children) {
  return el("a", { href, title: href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}
