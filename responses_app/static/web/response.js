// The pages of one response: keyboard, and growth while it runs.

import { backLink } from "./back.js";
import "./copy.js";
import { keyboard } from "./keys.js";
import { events } from "./stream.js";
import { visible, visibleBehind } from "./visible.js";

// Characters that are shown of what an event, or a run of deltas, says; as in web/response/event_log/events.py.
const BRIEF = 140;

const page = document.querySelector("#response");
keyboard({ links: "#events a.open, .chain a.open", back: backLink() });

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const titleOf = ({ type, role, name }) =>
  role || type === "reasoning" ? capitalized(role ?? type) : [type, name].filter(Boolean).join(": ");

// The beginning of a text, with an ellipsis if something is left out.
const brief = (text) => visible(text.slice(0, BRIEF)) + (text.length > BRIEF ? "…" : "");

function payload({ type, sequence_number, response, delta, ...rest }) {
  if (typeof delta === "string") return delta;
  if (!response) return JSON.stringify(delta === undefined ? rest : { ...rest, delta });
  const { status, error, incomplete_details, usage, model } = response;
  const telling = Object.entries({ status, error, incomplete_details, usage, model });
  return JSON.stringify(Object.fromEntries(telling.filter(([, value]) => value != null)));
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
    block.append(element("h2", "", visible(titleOf(item))));
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
    const text = payload(event);
    const said = element("span", "", brief(text));
    said.dir = "auto";
    cells[4].append(said);
    const row = element("tr", "");
    row.append(...cells);
    this.body.append(row);
    this.last = { type: event.type, count: 1, cell: cells[3], link, said, text, first: event.sequence_number };
    this.before = ms;
  }

  count(event) {
    const { last } = this;
    last.count += 1;
    last.cell.textContent = `${last.count} × ${event.type}`;
    last.link.textContent = `${last.first}–${event.sequence_number}`;
    if (last.text.length <= BRIEF) {
      last.text += event.delta;
      last.said.textContent = brief(last.text);
    }
    this.before = Math.max(Math.round(Date.now() - Number(page.dataset.created) * 1000), 0);
  }
}

async function follow(url) {
  const place = document.querySelector("#answered");
  const body = document.querySelector("#events[data-after]");
  const after = body?.dataset.after ?? "";
  // Of a page in the middle of a log, or of some kinds alone, nothing grows.
  const grows = place ? new Answer(place) : body && after !== "" && !("chosen" in body.dataset) ? new Lines(body) : null;
  const [state, said] = ["[data-state]", "[data-said]"].map((place) => document.querySelector(place));
  const connected = (is) => {
    if (!is && said) said.textContent = " · Connection lost. Reconnecting…";
  };
  for await (const event of events(url, place || !grows ? -1 : Number(after), connected)) {
    grows?.take(event);
    if (event.type === "response.in_progress" && state) state.textContent = "Running";
    const count = event.sequence_number + 1;
    if (said) said.textContent = ` · ${count} event${count === 1 ? "" : "s"}`;
  }
  // It has ended: the server shows it with its figures.
  location.reload();
}

if (page.dataset.live && (document.querySelector("#answered") || document.querySelector("#events"))) follow(page.dataset.live);
