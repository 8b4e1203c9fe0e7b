// How a response ended, in words: what it took, and what went wrong.
import { button, el, visible } from "./dom.js";

const REASONS = { max_output_tokens: "It reached the limit of output tokens.", content_filter: "It was filtered." };

export function failure(response, retry) {
  if (response.status === "cancelled") return [el("p", { class: "quiet" }, "Stopped.")];
  if (response.status === "incomplete") {
    const reason = response.incomplete_details?.reason;
    return [el("p", { class: "warn" }, REASONS[reason] ?? `It ended early: ${reason}.`)];
  }
  if (response.status !== "failed") return [];
  const message = response.error?.message ?? "The server does not say why.";
  return [el("p", { class: "bad", role: "alert" }, `It failed: ${visible(message)}`), button("Try again", retry)];
}

export function figures(usage) {
  if (!usage) return null;
  const thought = usage.output_tokens_details?.reasoning_tokens;
  const cached = usage.input_tokens_details?.cached_tokens;
  const text = `${usage.input_tokens} tokens in${cached ? ` (${cached} cached)` : ""}, ${usage.output_tokens} out${thought ? ` (${thought} thinking)` : ""}`;
  return el("span", { class: "quiet" }, text);
}
