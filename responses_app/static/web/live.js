// Live events of a response: the output that grows, and the lines of the event list.
import { fetchFragment } from "./items.js";
import { OutputItem } from "./output_item.js";
import { events } from "./stream.js";
import { visible } from "./visible.js";

// As in web/response/event_log/events.py.
const MAX_EXCERPT_CHARS = 140;

// After this silence the process may have ended, and another one take the response over.
const SILENCE_MS = 3000;

const page = document.querySelector("#response");

function element(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

// The beginning of a text, with an ellipsis for omitted text.
const excerpt = (text) => visible(text.slice(0, MAX_EXCERPT_CHARS)) + (text.length > MAX_EXCERPT_CHARS ? "…" : "");

function payload({ type, sequence_number, item_id, response, delta, ...rest }) {
  if (typeof delta === "string") return delta;
  if (rest.item) rest.item = { ...rest.item, id: undefined };
  if (!response) return JSON.stringify(delta === undefined ? rest : { ...rest, delta });
  const { status, error, incomplete_details, usage, model } = response;
  const fields = Object.entries({ status, error, incomplete_details, usage, model });
  return JSON.stringify(Object.fromEntries(fields.filter(([, value]) => value != null)));
}

/** Output of the response from the first event on. It replaces the server-rendered output, so that no text is missing or repeated. */
export class LiveOutput {
  constructor(container, url) {
    this.container = container;
    this.url = url;
    this.items = new Map();
  }

  apply(event) {
    if (event.type === "response.created") this.container.replaceChildren();
    if (event.type === "response.output_item.added") this.open(event.output_index, event.item);
    const item = this.items.get(event.output_index);
    if (event.type === "response.output_item.done") item?.complete(event.item);
    else item?.apply(event);
  }

  open(index, item) {
    if (!this.turn) {
      this.turn = element("section", "turn assistant");
      this.turn.append(element("h2", "", "Assistant"));
      this.container.append(this.turn);
    }
    const output = new OutputItem(item, this.url);
    this.turn.append(output.element);
    this.items.set(index, output);
  }
}

/** Event lines below the server-rendered lines. Consecutive deltas of the same type share a counting line. */
class LiveEvents {
  constructor(body) {
    this.body = body;
    this.last = null;
    this.before = null;
  }

  apply(event) {
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
    const payloadCell = element("span", "", excerpt(text));
    payloadCell.dir = "auto";
    cells[4].append(payloadCell);
    const row = element("tr", "");
    row.append(...cells);
    this.body.append(row);
    this.last = { type: event.type, count: 1, cell: cells[3], link, payloadCell, text, first: event.sequence_number };
    this.before = ms;
  }

  count(event) {
    const { last } = this;
    last.count += 1;
    last.cell.textContent = `${last.count} × ${event.type}`;
    last.link.textContent = `${last.first}–${event.sequence_number}`;
    if (last.text.length <= MAX_EXCERPT_CHARS) {
      last.text += event.delta;
      last.payloadCell.textContent = excerpt(last.text);
    }
    this.before = Math.max(Math.round(Date.now() - Number(page.dataset.created) * 1000), 0);
  }
}

/** Keeps the notices about take-overs current: in a silence, and once after it. `heard` returns the time of the last event. */
function watchTakeovers(heard) {
  const notices = document.querySelector("#takeovers");
  let wasSilent = true;
  const look = async () => {
    if (document.hidden) return;
    const isSilent = Date.now() - heard() > SILENCE_MS;
    if (!isSilent && !wasSilent) return;
    wasSilent = isSilent;
    const fresh = await fetchFragment(notices.dataset.url);
    if (fresh && fresh.textContent !== notices.textContent) notices.replaceChildren(...fresh.childNodes);
  };
  if (notices) setInterval(look, SILENCE_MS);
}

export async function follow(url) {
  const output = document.querySelector("#answered");
  const body = document.querySelector("#events[data-after]");
  const after = body?.dataset.after ?? "";
  // Filtered pages and pages before the end of the log show no live events.
  const view = output ? new LiveOutput(output, location.pathname) : body && after !== "" && !("chosen" in body.dataset) ? new LiveEvents(body) : null;
  const [state, note] = ["[data-state]", "[data-said]"].map((selector) => document.querySelector(selector));
  let counted = "";
  const onConnection = (isConnected) => {
    if (note) note.textContent = isConnected ? counted : " · Connection lost. Reconnecting…";
  };
  let heardAt = Date.now();
  watchTakeovers(() => heardAt);
  for await (const event of events(url, output || !view ? -1 : Number(after), onConnection)) {
    view?.apply(event);
    heardAt = Date.now();
    if (event.type === "response.in_progress" && state) state.textContent = "Running";
    const count = event.sequence_number + 1;
    counted = ` · ${count} event${count === 1 ? "" : "s"}`;
    if (note) note.textContent = counted;
  }
  // The response has ended: load the final page.
  location.reload();
}
