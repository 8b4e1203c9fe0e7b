// Server-sent events of a response by fetch: from behind a number to the terminal event, over as many connections as it takes.

const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);
const AGAIN_MS = 1000;
const LONGEST_MS = 15_000;

async function* blocks(body) {
  let held = "";
  for await (const chunk of read(body)) {
    const parts = (held + chunk).split("\n\n");
    held = parts.pop();
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
 * All events behind `after`, each once, the terminal one last. Ends early if the response is gone, or the session has ended.
 * `connected` is called with whether the connection stands.
 */
export async function* events(url, after = -1, connected = () => {}) {
  for (let wait = AGAIN_MS; ; wait = Math.min(wait * 2, LONGEST_MS)) {
    try {
      const answer = await fetch(after < 0 ? url : `${url}?after=${after}`);
      // A server that is being restarted is there again in a moment.
      if (answer.status >= 500) throw new Error(String(answer.status));
      if (!answer.ok || answer.status === 204 || answer.redirected) return;
      connected(true);
      wait = AGAIN_MS;
      for await (const block of blocks(answer.body)) {
        const line = block.split("\n").find((one) => one.startsWith("data: {"));
        if (!line) continue;
        const event = JSON.parse(line.slice(6));
        after = event.sequence_number;
        yield event;
        if (TERMINAL.has(event.type)) return;
      }
    } catch {
      // The connection broke; the log has the rest.
    }
    connected(false);
    await new Promise((later) => setTimeout(later, wait));
  }
}
