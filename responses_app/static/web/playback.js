// Plays the events of a response at the recorded speed, loaded by the player on first use.
import { LiveOutput } from "./live.js";
import { visible } from "./visible.js";

const MAX_JSON_CHARS = 20_000;
// With reduced motion no text grows: an item appears when it is done.
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
let recorded = null;

async function load(response) {
  const [times, log] = await Promise.all([`${response}/events/times`, `${response}.jsonl`].map((url) => fetch(url).then((answer) => answer.text())));
  return { times: JSON.parse(times), log: log.trim().split("\n").map((line) => JSON.parse(line)) };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function describe(event, ms, status) {
  const [heading, state] = document.querySelectorAll("#event h2");
  heading.firstChild.textContent = `Event ${event.sequence_number} · ${event.type} · ${ms} ms `;
  state.firstChild.textContent = `Response after event ${event.sequence_number} · ${status} `;
  document.querySelector("#event pre").textContent = visible(JSON.stringify(event, null, 2)).slice(0, MAX_JSON_CHARS);
}

/** Plays the events after `number` while `isPlaying`; `show` is told each of them and its time. */
export async function playback({ response, number, last, show, isPlaying }) {
  recorded ??= load(response);
  const { times, log } = await recorded;
  if (!isPlaying()) return;
  if (number >= last) number = -1;
  const view = new LiveOutput(document.querySelector("#state"), response);
  const apply = (event) => !(isStill.matches && event.type.endsWith(".delta")) && view.apply(event);
  let status = "";
  const take = (event) => (apply(event), (status = event.response?.status ?? status));
  log.slice(0, number + 1).forEach(take);
  const begin = performance.now() - (times[number] ?? 0);
  while (number < last) {
    await pause((times[number + 1] ?? 0) - (performance.now() - begin));
    if (!isPlaying()) return;
    do take(log[++number]);
    while (number < last && times[number + 1] <= performance.now() - begin);
    show(number, times[number]);
    describe(log[number], times[number], status);
  }
}
