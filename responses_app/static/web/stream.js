// Event stream of a response by fetch, with reconnection until the terminal event.

const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 15_000;

async function* blocks(body) {
  let buffered = "";
  for await (const chunk of read(body)) {
    const parts = (buffered + chunk).split("\n\n");
    buffered = parts.pop();
    yield* parts;
  }
}

async function* read(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/**
 * Yields each event after number `after` once. Ends early if the response was deleted or the session has ended.
 * Calls `onConnection` with true when connected and with false when the connection is lost.
 */
export async function* events(url, after = -1, onConnection = () => {}) {
  for (let wait = FIRST_RETRY_MS; ; wait = Math.min(wait * 2, MAX_RETRY_MS)) {
    try {
      const response = await fetch(after < 0 ? url : `${url}?after=${after}`);
      // Retry: the server may be restarting.
      if (response.status >= 500) throw new Error(String(response.status));
      if (!response.ok || response.status === 204 || response.redirected) return;
      onConnection(true);
      wait = FIRST_RETRY_MS;
      for await (const block of blocks(response.body)) {
        const line = block.split("\n").find((text) => text.startsWith("data: {"));
        if (!line) continue;
        const event = JSON.parse(line.slice(6));
        after = event.sequence_number;
        yield event;
        if (TERMINAL.has(event.type)) return;
      }
    } catch {
      // Connection lost: resume after the last event.
    }
    onConnection(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
