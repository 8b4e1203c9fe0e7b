// Errors of a request in words for the person: the name of a file instead of its place, and a conversation that was deleted.
import { partsOf } from "./turn.js";

export function requestError(error, body) {
  if (error.code === "previous_response_not_found") {
    return new Error("The answer above was deleted. Edit an earlier message, or start a new conversation.");
  }
  if (error.status === 404 && !error.param && body?.conversation) return new Error("This conversation was deleted. Start a new one.");
  return error.param?.endsWith(".file_id") ? fileError(error, body) : error;
}

function fileError(error, body) {
  const [, item, part] = error.param.match(/^input\[(\d+)\]\.content\[(\d+)\]/) ?? [];
  const file = item && body && partsOf(body.input[item])[part].filename;
  return file ? new Error(`${file}: ${error.message.replace(/^.*?'\. /, "")} Edit the message to send it without the file.`) : error;
}
