// Streamed Markdown: finished blocks are rendered once, the last block repeatedly. The cost is linear in the text.
import { visible, visibleAfter } from "../visible.js";
import { enhance } from "./enhance.js";
import { MAX_CHARS, container, elements, markdown, parse, source } from "./markdown.js";

// An open block up to this length is rendered in every frame. A longer block is rendered after growth by an eighth, as plain text between.
const SMALL_BLOCK_CHARS = 2000;
const GROWTH = 1.125;

export class MarkdownStream {
  // `url` is that of the item: files are cited below the path of its server.
  constructor(url = "") {
    this.root = url.slice(0, Math.max(url.lastIndexOf("/responses/"), 0));
    // The text without the links of `cite`, whose positions count from its beginning.
    this.written = "";
    this.cited = new Set();
    this.element = container();
    this.element.classList.add("streaming");
    this.text = "";
    // The text from the last block on, its length on the page, and its length at the last rendering.
    this.open = "";
    this.shown = 0;
    this.rendered = 0;
    this.nodes = [];
    this.env = {};
  }

  append(text) {
    this.written += text;
    this.add(text);
  }

  // Shows a citation of a file, which comes behind the cited text, as `with_links` of file_citations.py does.
  cite({ type, filename, file_id, container_id, index, start_index = index, end_index = index }) {
    const key = `${start_index} ${end_index} ${file_id}`;
    if (!/file_citation$/.test(type) || this.cited.has(key)) return;
    this.cited.add(key);
    const label = `${filename}`.replace(/[[\]\n]/g, " ").replace(/[\\`*_~]/g, "\\$&");
    const file = `files/${encodeURIComponent(file_id)}/content`;
    if (!container_id) return this.add(` ([${label}](${this.root}/${file}))`);
    const path = [...this.written].slice(start_index, end_index).join("");
    const at = this.open.lastIndexOf(path);
    if (at < 0 || !path) return;
    const before = this.open.slice(0, at);
    const url = `${this.root}/containers/${encodeURIComponent(container_id)}/${file}`;
    const [old, rest] = [this.open, this.open.slice(at + path.length)];
    this.open = `${before}${before.endsWith("](") ? url : `[${label}](${url})`}${rest}`;
    this.text = this.text.slice(0, this.text.length - old.length) + this.open;
    this.rendered = 0;
    this.add("");
  }

  add(text) {
    this.text += text;
    // At the end `rendered` in blocks.js shows longer texts, as plain text.
    if (this.text.length > MAX_CHARS) return;
    this.open += text;
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  // Returns true if the element shows all of the text.
  finish() {
    cancelAnimationFrame(this.frame);
    this.element.classList.remove("streaming");
    if (this.text.length > MAX_CHARS) return false;
    this.render();
    // The address of a link may come after its block.
    if (Object.keys(this.env.references ?? {}).length) this.element.replaceChildren(...markdown(this.text).childNodes);
    enhance(this.element);
    return true;
  }

  draw() {
    this.frame = null;
    if (this.open.length <= SMALL_BLOCK_CHARS || this.open.length >= this.rendered * GROWTH) this.render();
    else this.extend(this.open.slice(this.shown));
    this.shown = this.open.length;
  }

  extend(text) {
    let last = this.element;
    while (last.lastChild) last = last.lastChild;
    if (last.nodeType === Node.TEXT_NODE) last.appendData(visibleAfter(last.data, text));
    else last.append(visible(text));
  }

  render() {
    const lines = this.open.split("\n");
    const tokens = parse(source(this.open), this.env);
    // A block is final once the next block begins with a complete line.
    const next = tokens.findLastIndex(({ level, nesting, map }) => level === 0 && nesting >= 0 && map[0] < lines.length - 1);
    const isFinal = next > 0;
    const final = isFinal ? elements(tokens.slice(0, next), this.env) : [];
    this.keepOrReplace([...final, ...elements(tokens.slice(isFinal ? next : 0), this.env)]);
    this.nodes.splice(0, final.length).forEach(enhance);
    if (isFinal) this.open = lines.slice(tokens[next].map[0]).join("\n");
    this.rendered = this.shown = this.open.length;
  }

  // Keeps the elements that are the same as before, so that a selection in the last block survives.
  keepOrReplace(nodes) {
    const same = nodes.findIndex((node, index) => !this.nodes[index]?.isEqualNode(node));
    const kept = same < 0 ? nodes.length : same;
    for (const node of this.nodes.slice(kept)) node.remove();
    this.element.append(...nodes.slice(kept));
    nodes.splice(0, kept, ...this.nodes.slice(0, kept));
    this.nodes = nodes;
  }
}
