// The pages of one response: keyboard, and growth while it runs.

import "./copy.js";
import { keyboard } from "./keys.js";
import { events } from "./stream.js";
import { visible, visibleBehind } from "./visible.js";

const page = document.querySelector("#response");
keyboard({ links: "#events a.open, .chain a.open", back: page.dataset.back });

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** The answer from its first event on: what the server had shown of it is shown anew, so that nothing is missing or twice. */
class Answer {
  constructor(place) {
    this.place = place;
    this.items = new Map();
  }

  take(event) {
    if (event.type === "response.created") this.place.replaceChildren();
    if (event.type === "response.output_item.added") this.open(event.output_index, event.item);
    const text = this.items.get(event.output_index);
    if (text && typeof event.delta === "string") text.append(visibleBehind(text.lastChild?.data ?? "", event.delta));
  }

  open(index, item) {
    const shape = item.type === "message" || item.type === "reasoning" ? item.type : "call";
    const block = element("article", `block ${shape}`);
    block.append(element("h2", "", visible([item.role ?? item.type, item.name].filter(Boolean).join(": "))));
    const text = element("div", shape === "call" ? "code mono" : "text");
    text.dir = "auto";
    block.append(text);
    this.place.append(block);
    this.items.set(index, text);
  }
}

/** Lines below those that the server wrote: deltas of one kind in one line that counts. */
class Lines {
  constructor(body) {
    this.body = body;
    this.last = null;
    this.before = null;
  }

  take(event) {
    const ms = Math.max(Math.round(Date.now() - Number(page.dataset.created) * 1000), 0);
    if (this.last?.type === event.type && event.type.endsWith(".delta")) return this.count(event);
    const cells = ["n", "n", "n", "", "brief mono"].map((name) => element("td", name));
    const link = element("a", "open", String(event.sequence_number));
    link.href = `${location.pathname}/${event.sequence_number}`;
    cells[0].append(link);
    cells[1].textContent = `≈ ${ms}`;
    cells[2].textContent = this.before === null ? "" : String(ms - this.before);
    [cells[1].dataset.name, cells[2].dataset.name] = ["ms", "Δ"];
    cells[3].textContent = event.type;
    const said = element("span", "", typeof event.delta === "string" ? visible(event.delta) : "");
    said.dir = "auto";
    cells[4].append(said);
    const row = element("tr", "");
    row.append(...cells);
    this.body.append(row);
    this.last = { type: event.type, count: 1, cell: cells[3], link, said, first: event.sequence_number };
    this.before = ms;
  }

  count(event) {
    const { last } = this;
    last.count += 1;
    last.cell.textContent = `${last.count} × ${event.type}`;
    last.link.textContent = `${last.first}–${event.sequence_number}`;
    if (last.said.textContent.length < 140) last.said.textContent += visibleBehind(last.said.textContent, event.delta);
    this.before = Math.max(Math.round(Date.now() - Number(page.dataset.created) * 1000), 0);
  }
}

async function follow(url) {
  const place = document.querySelector("#answered");
  const body = document.querySelector("#events[data-after]");
  const after = body?.dataset.after ?? "";
  // Of a page in the middle of a log, or of some kinds alone, nothing grows.
  const grows = place ? new Answer(place) : body && after !== "" && !("chosen" in body.dataset) ? new Lines(body) : null;
  const said = document.querySelector("[data-said]");
  let count = 0;
  for await (const event of events(url, place || !grows ? -1 : Number(after))) {
    grows?.take(event);
    count = event.sequence_number + 1;
    if (said) said.textContent = `${count} events so far.`;
  }
  // It has ended: the server shows it with its figures.
  location.reload();
}

if (page.dataset.live && (document.querySelector("#answered") || document.querySelector("#events"))) follow(page.dataset.live);
