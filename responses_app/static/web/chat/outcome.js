// Outcome of a response: status message, tokens and speed.
import { button, el, visible } from "./dom.js";

export function outcome(response, retry) {
  if (response.status === "cancelled") return [el("p", { class: "quiet" }, "Stopped.")];
  // The server says the reason, with the times.
  if (response.status === "incomplete") return [el("p", { class: "warn" }, "Ended early.")];
  if (response.status === "failed") {
    const message = response.error?.message ?? "Unknown error.";
    return [el("p", { class: "bad", role: "alert" }, `Error: ${visible(message)}`), ...(retry ? [button("Try again", retry)] : [])];
  }
  return response.output.some(hasContent) ? [] : [el("p", { class: "quiet" }, "The model returned no text.")];
}

function hasContent(item) {
  if (item.type === "message") return item.content.some((part) => (part.text ?? part.refusal ?? "-").trim());
  return item.type !== "reasoning";
}

// Tokens and speed. `times` are {first_s, rate}; null if unknown.
export function statistics(usage, times) {
  if (!usage) return null;
  const reasoning = usage.output_tokens_details?.reasoning_tokens;
  const cached = usage.input_tokens_details?.cached_tokens;
  const parts = [`${count(usage.input_tokens)} in${cached ? ` (${count(cached)} cached)` : ""}`, `${count(usage.output_tokens)} out${reasoning ? ` (${count(reasoning)} reasoning)` : ""}`];
  if (times?.first_s != null) parts.push(`${times.first_s.toFixed(times.first_s < 1 ? 2 : 1)} s TTFT`);
  if (times?.rate != null) parts.push(`${times.rate.toFixed(times.rate < 10 ? 1 : 0)} tok/s`);
  return el("span", { class: "quiet figures", title: "Tokens in and out, time to first token, output tokens per second" }, parts.join(" · "));
}

const count = (number) => number.toLocaleString("en");
