// Parser of server-sent events: yields the JSON of each event until `[DONE]` or the end.

export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffered = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // An event ends with an empty line, which chunks may split. Each text is searched once.
      let from = Math.max(0, buffered.length - 1);
      buffered += value;
      for (let end; (end = buffered.indexOf("\n\n", from)) >= 0; from = 0) {
        const data = dataOf(buffered.slice(0, end));
        buffered = buffered.slice(end + 2);
        if (data === "[DONE]") return;
        if (data !== "") yield JSON.parse(data);
      }
    }
  } finally {
    // Close the connection, also if the caller stops early.
    reader.cancel().catch(() => {});
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
