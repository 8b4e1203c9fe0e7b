// Error about an attached file: names the file instead of its place in the request.
import { partsOf } from "./turn.js";

export function fileError(error, body) {
  const [, item, part] = error.param.match(/^input\[(\d+)\]\.content\[(\d+)\]/) ?? [];
  const file = item && body && partsOf(body.input[item])[part].filename;
  return file ? new Error(`${file}: ${error.message.replace(/^.*?'\. /, "")} Edit the message to send it without the file.`) : error;
}
