// Steps through the events of a response: by keys, with a slider, and at the recorded speed.
import { mark } from "./selection.js";
import { visible } from "./visible.js";

const MAX_JSON_CHARS = 20_000;
const player = document.querySelector("#player");
const slider = player.querySelector("input");
const button = player.querySelector("button");
const output = player.querySelector("output");
const last = Number(slider.max);
const response = player.dataset.response;
// With reduced motion no text grows: an item appears when it is done.
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
let number = Number(slider.value);
let loading = new AbortController();
let playing = null;
let recorded = null;

async function load() {
  const [times, log] = await Promise.all([`${response}/events/times`, `${response}.jsonl`].map((url) => fetch(url).then((answer) => answer.text())));
  return { times: JSON.parse(times), log: log.trim().split("\n").map((line) => JSON.parse(line)) };
}

function show(place, ms) {
  number = place;
  slider.value = String(place);
  slider.setAttribute("aria-valuetext", `Event ${place} of ${last}`);
  output.textContent = ms === undefined ? `${place} of ${last}` : `${place} of ${last} · ${Math.round(ms)} ms`;
}

/** Shows the event `place` and the state after it, as the server draws both. */
export async function seek(place) {
  stop();
  show(Math.min(Math.max(place, 0), last));
  loading.abort();
  loading = new AbortController();
  const url = `${response}/events/${number}`;
  history.replaceState(history.state, "", url);
  try {
    const answer = await fetch(url, { signal: loading.signal, redirect: "error" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("#event");
    document.title = page.title;
    mark(page.querySelector(".timeline [aria-selected=true]")?.dataset.item ?? null);
    document.querySelector("#selected").replaceChildren(...page.querySelector("#selected").childNodes);
    const { morph } = await import("./morph.js");
    await morph(document.querySelector("#event"), fresh);
    document.dispatchEvent(new Event("fresh"));
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

function stop() {
  playing = null;
  button.textContent = "Play";
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Plays from the current event on, from the first one when the last is shown. */
async function play() {
  const turn = (playing = {});
  button.textContent = "Pause";
  recorded ??= load();
  const { times, log } = await recorded;
  const { LiveOutput } = await import("./live.js");
  if (playing !== turn) return;
  if (number >= last) number = -1;
  const view = new LiveOutput(document.querySelector("#state"), response);
  const apply = (event) => !(isStill.matches && event.type.endsWith(".delta")) && view.apply(event);
  for (const event of log.slice(0, number + 1)) apply(event);
  const begin = performance.now() - (times[number] ?? 0);
  while (number < last) {
    await pause((times[number + 1] ?? 0) - (performance.now() - begin));
    if (playing !== turn) return;
    do apply(log[++number]);
    while (number < last && times[number + 1] <= performance.now() - begin);
    show(number, times[number]);
    describe(log[number], times[number]);
  }
  seek(number);
}

function describe(event, ms) {
  document.querySelector("#event h2").firstChild.textContent = `Event ${event.sequence_number} · ${event.type} · ${ms} ms `;
  document.querySelector("#event pre").textContent = visible(JSON.stringify(event, null, 2)).slice(0, MAX_JSON_CHARS);
}

export function start() {
  show(number);
  slider.addEventListener("input", () => seek(Number(slider.value)));
  button.addEventListener("click", () => (playing ? seek(number) : play()));
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    seek(number + step);
  });
}
