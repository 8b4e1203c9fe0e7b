// Math in Markdown, with the rules of web/render/math.py. The page has the TeX source until enhance.js typesets it.
const MAX_CHARS = 2000;
const MAX_LINES = 100;
const INLINE = /^(?:\$\$([^$]+)\$\$|\\\[([^]+?)\\\]|\\\(([^]+?)\\\)|\$([^\s$`](?:[^$`\n]*[^\s$`\\])?)\$(?![0-9]))/;
const BLOCK_ENDS = { "$$": "$$", "\\[": "\\]" };

export function addMath(parser) {
  const { escapeHtml } = parser.utils;
  parser.inline.ruler.before("escape", "math", inline);
  parser.block.ruler.before("fence", "math_block", block, { alt: ["paragraph", "blockquote", "list"] });
  parser.renderer.rules.math = (tokens, at) => `<span class="math${tokens[at].info}">${escapeHtml(tokens[at].content)}</span>`;
  parser.renderer.rules.math_block = (tokens, at) => `<div class="math display" tabindex="0">${escapeHtml(tokens[at].content)}</div>\n`;
}

function inline(state, silent) {
  if (!"$\\".includes(state.src[state.pos])) return false;
  if (state.src[state.pos] === "$" && /\w/.test(state.src[state.pos - 1] ?? "")) return false;
  const match = INLINE.exec(state.src.slice(state.pos, Math.min(state.posMax, state.pos + MAX_CHARS)));
  if (!match) return false;
  if (!silent) {
    const token = state.push("math", "", 0);
    token.content = match.slice(1).find((part) => part !== undefined).trim();
    token.info = match[1] || match[2] ? " display" : "";
  }
  state.pos += match[0].length;
  return true;
}

function block(state, start, end, silent) {
  const first = lineOf(state, start);
  const closing = BLOCK_ENDS[first.slice(0, 2)];
  if (!closing || state.sCount[start] - state.blkIndent >= 4) return false;
  let content = first.slice(2);
  let line = start;
  // A formula has no empty line.
  while (!content.trimEnd().endsWith(closing)) {
    line += 1;
    if (line >= Math.min(end, start + MAX_LINES) || state.isEmpty(line) || state.sCount[line] < state.blkIndent) return false;
    content += `\n${lineOf(state, line)}`;
  }
  const formula = content.trimEnd().slice(0, -closing.length);
  if (formula.includes(closing) || formula.length > MAX_CHARS) return false;
  if (!silent) {
    const token = state.push("math_block", "", 0);
    token.content = formula.trim();
    token.map = [start, line + 1];
    token.block = true;
    state.line = line + 1;
  }
  return true;
}

const lineOf = (state, line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);
