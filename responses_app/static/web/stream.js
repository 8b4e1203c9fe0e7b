// Server-sent events of a response by fetch: from behind a number to the terminal event, over as many connections as it takes.

const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);
const AGAIN_MS = 1000;

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

/** All events behind `after`, each once, the terminal one last. Ends early if the response is gone. */
export async function* events(url, after = -1) {
  for (;;) {
    try {
      const answer = await fetch(after < 0 ? url : `${url}?after=${after}`);
      if (!answer.ok || answer.status === 204 || answer.redirected) return;
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
    await new Promise((later) => setTimeout(later, AGAIN_MS));
  }
}
