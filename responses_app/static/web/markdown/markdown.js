// Markdown as HTML, with the rules of web/render/markdown.py: escaped text, links of known kinds, no images, no styles.
import { visible } from "../visible.js";
import MarkdownIt from "../vendor/markdown-it.js";
import { addMath } from "./math.js";

// Longer texts stay plain: their layout would block the page.
export const MAX_CHARS = 300_000;
// Pages, mail, and downloads of this server. Any other link stays text.
const LINK = /^(?:https?:\/\/|mailto:|\/(?:containers|files)\/[\w%./-]+\/content$)/i;
// Deeper blocks are left out.
const MAX_NESTING = 100;
const BARE_URL = /https?:\/\/[^\s<>()[\]`*]+/g;
const URL_END = /[.,;:!?'"]+$/;

const parser = MarkdownIt("commonmark", { html: false, maxNesting: MAX_NESTING }).enable(["table", "strikethrough"]).disable("image");
const { escapeHtml } = parser.utils;
addMath(parser);
parser.validateLink = (url) => LINK.test(url);
Object.assign(parser.renderer.rules, {
  fence: code,
  code_block: code,
  table_open: () => '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n',
  table_close: () => "</table></div>\n",
});

// The Markdown `text` as the parser takes it.
export const source = (text) => visible(text.replaceAll("\r\n", "\n"));

export const html = (text) => render(parse(source(text), {}), {});

// An element with the text, not yet enhanced.
export function markdown(text) {
  const element = container();
  if (text.length > MAX_CHARS) element.append(Object.assign(document.createElement("pre"), { textContent: visible(text) }));
  else {
    const env = {};
    element.append(...elements(parse(source(text), env), env));
  }
  return element;
}

export const container = () => Object.assign(document.createElement("div"), { className: "markdown", dir: "auto" });

// `env` keeps the link references of a text.
export function parse(text, env) {
  const tokens = parser.parse(text, env);
  for (const token of tokens) {
    // The Content-Security-Policy forbids inline styles, so that `text-align: right` becomes the class `right`.
    const style = token.attrGet("style");
    if (style) token.attrs = [["class", style.split(":").at(-1)]];
    // h1 and h2 are headings of the page.
    if (token.type.startsWith("heading_")) token.tag = `h${Math.min(Number(token.tag[1]) + 2, 6)}`;
    if (token.children?.length) token.children = withLinks(token.children);
  }
  return tokens;
}

const render = (tokens, env) => parser.renderer.render(tokens, parser.options, env);

// The blocks of `tokens` as elements. The renderer has escaped all text.
export function elements(tokens, env) {
  const template = document.createElement("template");
  template.innerHTML = render(tokens, env);
  return [...template.content.children];
}

// Adds attributes of links, and a link for each bare URL outside of links.
function withLinks(children) {
  let depth = 0;
  return children.flatMap((token) => {
    if (token.type.startsWith("link_")) depth += token.nesting;
    if (token.type === "link_open") setAttributes(token, token.attrGet("href"));
    return token.type === "text" && !depth ? splitUrls(token) : [token];
  });
}

function splitUrls({ content: text, constructor: Token }) {
  const newToken = (type, tag, nesting) => new Token(type, tag, nesting);
  const textToken = (content) => Object.assign(newToken("text", "", 0), { content });
  const tokens = [];
  let end = 0;
  for (const match of text.matchAll(BARE_URL)) {
    const url = match[0].replace(URL_END, "");
    const opening = newToken("link_open", "a", 1);
    setAttributes(opening, url);
    tokens.push(textToken(text.slice(end, match.index)), opening, textToken(url), newToken("link_close", "a", -1));
    end = match.index + url.length;
  }
  return [...tokens, textToken(text.slice(end))];
}

// The title shows the address, because the text of a link may mislead.
function setAttributes(token, url) {
  token.attrs = Object.entries({ href: url, title: url, rel: "noreferrer noopener nofollow", target: "_blank" });
}

function code(tokens, at) {
  const language = /^[\w+#.-]+/.exec(tokens[at].info.trim())?.[0];
  // A scrolling element must accept the keyboard focus.
  return `<pre dir="ltr"${language ? ` data-language="${escapeHtml(language)}"` : ""}><code tabindex="0">${escapeHtml(tokens[at].content)}</code></pre>\n`;
}
