// Follows a response to its end: yields each event once and in order, and reconnects.
import { ApiError } from "./protocol.js";
import { events } from "./sse.js";

export const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);
export const LOST = "Connection lost. Reconnecting… (generation continues on the server)";
const MAX_RETRIES = 8;
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 8000;

// `start` is {body} to create a response, with one key for all attempts, or {id} to follow an existing one. `onRetry` gets the
// number of each retry, and 0 when connected again. `onRefused` returns true to create again.
export async function* follow(api, start, { signal, onRetry, onRefused }) {
  let { id } = start;
  start.headers ??= { "Idempotency-Key": crypto.getRandomValues(new Uint32Array(4)).join("-") };
  let last = -1;
  for (let retries = 0; ; ) {
    try {
      const body = id ? await api.replay(id, last, signal) : await api.create(start.body, signal, start.headers);
      // The next event may take long.
      if (retries > 0) onRetry(0);
      for await (const event of events(body)) {
        if (event.sequence_number <= last) continue;
        // Events are missing: reconnect after `last`.
        if (event.sequence_number > last + 1) break;
        retries = 0;
        last = event.sequence_number;
        id ??= event.response?.id;
        yield event;
        if (TERMINAL.has(event.type)) return;
      }
      throw new Error("The connection was lost before the response was complete.");
    } catch (error) {
      if (signal.aborted || isFinal(error) || retries >= MAX_RETRIES) throw error;
      retries += 1;
      // Without an id the response may or may not exist, so only the user can decide to try again.
      if (!id && !(await onRefused?.(error))) throw error;
      if (!id) continue;
      onRetry(retries);
      await pause(Math.min(FIRST_RETRY_MS * 2 ** (retries - 1), MAX_RETRY_MS), signal);
    }
  }
}

function isFinal(error) {
  return error instanceof ApiError && error.status < 500 && error.status !== 429;
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
