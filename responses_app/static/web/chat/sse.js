// Server-sent events out of the body of a fetch: the JSON of each, until the end mark or the end of the body.

export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // A block ends with an empty line, which may be cut in two; what was searched before is not searched again.
      let from = Math.max(0, rest.length - 1);
      rest += value;
      for (let end; (end = rest.indexOf("\n\n", from)) >= 0; from = 0) {
        const data = dataOf(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (data === "[DONE]") return;
        if (data !== "") yield JSON.parse(data);
      }
    }
  } finally {
    // Also when the listener leaves in the middle: the connection is closed, not kept and unread.
    reader.cancel().catch(() => {});
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
