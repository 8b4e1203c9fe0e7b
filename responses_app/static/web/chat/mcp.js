// Cards of MCP servers: listings of tools, calls with results, and requests for approval.
import { CallCard, folded, imageOf } from "./call_card.js";
import { button, el, visible } from "./dom.js";
import { longText } from "./long_text.js";

class Listing {
  constructor(item) {
    this.summary = el("summary", {}, `Listing tools of ${item.server_label}…`);
    this.body = el("div");
    this.element = el("details", { class: "card mcp-list" }, this.summary, this.body);
  }

  apply() {}

  complete({ server_label, tools, error }) {
    this.summary.replaceChildren(visible(error ? `Tools of ${server_label}: not available` : `Tools of ${server_label}: ${tools.length}`));
    this.element.open = Boolean(error);
    const names = tools.map((tool) => el("li", {}, el("code", {}, tool.name), tool.description ? ` – ${tool.description}` : null));
    this.body.replaceChildren(error ? el("p", { class: "bad", dir: "auto" }, errorText(error)) : el("ul", {}, ...names));
  }
}

class ServerCall extends CallCard {
  constructor(item) {
    super(`${item.server_label}: ${item.name}`, `Call to ${item.name} of ${item.server_label}`, "Arguments");
  }

  apply(event) {
    if (event.type.endsWith("_arguments.delta")) this.text.append(event.delta);
    if (event.type.endsWith("_arguments.done")) {
      this.setText(pretty(event.arguments));
      this.start();
    }
  }

  complete(item) {
    this.setText(pretty(item.arguments));
    this.finish(item.status);
    if (item.error) this.output.replaceChildren(el("p", { class: "bad", dir: "auto" }, ...longText(errorText(item.error))), ...errorImages(item.error));
    else if (item.output != null) this.showResult(...result(item.output));
  }
}

class Approval {
  constructor(item) {
    this.item = item;
    this.state = el("span", { class: "state" }, "Approval needed");
    this.arguments = el("pre", { tabindex: "0", dir: "ltr", role: "region", "aria-label": "Arguments" }, ...longText(pretty(item.arguments)));
    this.output = el("div", { class: "output" });
    const head = el("div", { class: "head" }, el("code", {}, `${item.server_label}: ${item.name}`), this.state);
    this.element = el("section", { class: "card call approval", tabindex: "-1", "aria-label": `Approval for ${item.name} of ${item.server_label}` }, head, this.arguments, this.output);
    this.open = true;
  }

  apply() {}

  complete(item) {
    this.item = item;
    this.arguments.replaceChildren(...longText(pretty(item.arguments)));
  }

  // Shows the buttons. `onDecision` gets {approve, reason}.
  showForm(onDecision) {
    const reason = el("input", { "aria-label": `Reason to deny ${this.item.name}`, placeholder: "Reason to deny (optional)" });
    const decide = (approve) => onDecision(approve ? { approve } : { approve, reason: reason.value.trim() || undefined });
    const buttons = [
      button("Approve", () => decide(true), { class: "main", "aria-label": `Approve ${this.item.name}` }),
      button("Deny", () => decide(false), { class: "danger", "aria-label": `Deny ${this.item.name}` }),
    ];
    this.output.replaceChildren(
      el("p", {}, "The model wants to run this tool."),
      el("div", { class: "row", role: "group", "aria-label": "Decision" }, ...buttons, reason),
    );
    return this.element;
  }

  answers(item) {
    return item.type === "mcp_approval_response" && item.approval_request_id === this.item.id;
  }

  // `decision` is an input item, or {approve, reason}.
  answer({ approve, reason }) {
    this.open = false;
    this.state.textContent = approve ? "Approved" : "Denied";
    this.output.replaceChildren(reason ? el("p", { class: "quiet", dir: "auto" }, `Reason: ${reason}`) : "");
  }

  // A text stands for a call that was not answered: the call is denied with the text as the reason.
  outputOf(decision) {
    const { approve, reason } = typeof decision === "string" ? { approve: false, reason: decision } : decision;
    return { type: "mcp_approval_response", approval_request_id: this.item.id, approve, reason };
  }
}

function result(output) {
  const parts = contentParts(output);
  if (!parts) return [folded(pretty(output))];
  return parts.flatMap((part) => {
    return partImage(part) ?? folded(part.type === "text" ? pretty(part.text) : JSON.stringify(part, null, 2));
  });
}

// The image element of a part that is an image, otherwise null.
function partImage(part) {
  const { mimeType, data } = part.type === "resource" ? { mimeType: part.resource?.mimeType, data: part.resource?.blob } : part;
  return ["image", "resource"].includes(part.type) && typeof data === "string" ? imageOf(`data:${mimeType};base64,${data}`) : null;
}

const errorImages = (error) => (Array.isArray(error.content) ? error.content.map(partImage).filter(Boolean) : []);

// The content parts of an output that is a JSON list of parts, otherwise null.
function contentParts(output) {
  try {
    const value = JSON.parse(output);
    return Array.isArray(value) && value.length && value.every((part) => part && ["text", "image", "audio", "resource", "resource_link"].includes(part.type)) ? value : null;
  } catch {
    return null;
  }
}

function errorText(error) {
  if (typeof error === "string") return error;
  if (error.type === "http_error") return `The MCP server answered with the HTTP status ${error.code}: ${error.message}`;
  if (error.type !== "mcp_tool_execution_error") return `The call failed: ${error.message ?? JSON.stringify(error)}`;
  const texts = (error.content ?? []).filter((part) => !partImage(part)).map((part) => part.text ?? JSON.stringify(part));
  return `The tool reported an error: ${texts.join("\n")}`;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text ?? "";
  }
}

export const MCP_KINDS = { mcp_list_tools: Listing, mcp_call: ServerCall, mcp_approval_request: Approval };
