// Follows a response to its end: every event once and in order, across any number of broken connections.
import { Refused } from "./protocol.js";
import { events } from "./sse.js";

export const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);
const TRIES = 8;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8000;

// `start` is {order} for a response that is to be made, or {id} for one that is there. `trouble` hears of each attempt to
// come back, and of 0 when it has worked.
export async function* follow(api, start, { signal, trouble }) {
  let { id } = start;
  let last = -1;
  for (let misses = 0; ; ) {
    try {
      const body = id ? await api.replay(id, last, signal) : await api.create(start.order, signal);
      for await (const event of events(body)) {
        if (event.sequence_number <= last) continue;
        // The log goes on behind `last`: asked again, it tells what was lost on the way.
        if (event.sequence_number > last + 1) break;
        if (misses > 0) trouble((misses = 0));
        last = event.sequence_number;
        id ??= event.response?.id;
        yield event;
        if (TERMINAL.has(event.type)) return;
      }
      throw new Error("The connection was lost before the response was complete.");
    } catch (error) {
      // Without an id nobody knows whether the response was begun: a person decides whether to ask for another one.
      if (signal.aborted || !id || final(error) || misses >= TRIES) throw error;
      trouble((misses += 1));
      await pause(Math.min(FIRST_PAUSE_MS * 2 ** (misses - 1), LONGEST_PAUSE_MS), signal);
    }
  }
}

function final(error) {
  return error instanceof Refused && error.status < 500 && error.status !== 429;
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
