// Output items of the chat: fragments, and the answers that calls and approvals wait for.
import { OutputItem } from "../output_item.js";

export const OUTPUTS = { function_call: "function_call_output", custom_tool_call: "custom_tool_call_output", mcp_approval_request: "mcp_approval_response" };

export class ChatItem extends OutputItem {
  get isApproval() {
    return this.item.type === "mcp_approval_request";
  }

  get callId() {
    return this.isApproval ? this.item.id : this.item.call_id;
  }

  // True while the item needs an answer. An incomplete call never does.
  get open() {
    return !this.isAnswered && this.item.type in OUTPUTS && this.item.status !== "incomplete" && this.callId !== undefined;
  }

  get output() {
    return this.element.querySelector(".output");
  }

  answers(item) {
    return item.type === OUTPUTS[this.item.type] && (item.approval_request_id ?? item.call_id) === this.callId;
  }

  // The server draws the answer as soon as it is stored.
  answer() {
    this.isAnswered = true;
    this.output.querySelector("[data-form]")?.remove();
  }
}
