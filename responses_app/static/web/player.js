// Steps through the events of a response: by keys, with a slider, and at the recorded speed.
import { mark } from "./selection.js";

const player = document.querySelector("#player");
const slider = player.querySelector("input");
const button = player.querySelector("button");
const output = player.querySelector("output");
const last = Number(slider.max);
const response = player.dataset.response;
let number = Number(slider.value);
let loading = new AbortController();
let playing = null;

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

/** Plays from the current event on, from the first one when the last is shown. */
async function play() {
  const turn = (playing = {});
  button.textContent = "Pause";
  const { playback } = await import("./playback.js");
  await playback({ response, number, last, show, isPlaying: () => playing === turn });
  if (playing === turn) seek(number);
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
