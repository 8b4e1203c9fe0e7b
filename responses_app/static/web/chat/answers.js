// Items that answer calls and approvals.
import { OUTPUTS } from "./blocks.js";

export const unanswered = (cards) => cards.map((card) => outputOf(card, "The user did not provide a result for this tool call."));

// `answer` is a text, or the {approve, reason} of an approval. A text stands for an approval that was not given.
export function outputOf({ item, callId, isApproval }, answer) {
  const type = OUTPUTS[item.type];
  if (!isApproval) return { type, call_id: callId, output: answer };
  const { approve, reason } = typeof answer === "string" ? { approve: false, reason: answer } : answer;
  return { type, approval_request_id: callId, approve, reason };
}
