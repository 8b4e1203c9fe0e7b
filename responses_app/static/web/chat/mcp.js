// Cards of MCP servers: listings of tools, calls with results, and requests for approval.
import { button, el, visible } from "./dom.js";
import { GrowingText, longText } from "./long_text.js";

const TICK_MS = 1000;
// Longer results are folded.
const MAX_OPEN_CHARS = 600;
const MAX_OPEN_LINES = 12;
const IMAGE_TYPE = /^image\/(png|jpeg|webp|gif)$/;

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

class ServerCall {
  constructor(item) {
    this.state = el("span", { class: "state" }, "Writing arguments…");
    this.arguments = new GrowingText("pre", { tabindex: "0", dir: "ltr", role: "region", "aria-label": "Arguments" });
    this.output = el("div", { class: "output" });
    const head = el("div", { class: "head" }, el("code", {}, `${item.server_label}: ${item.name}`), this.state);
    this.element = el("section", { class: "card call", "aria-label": `Call to ${item.name} of ${item.server_label}` }, head, this.arguments.element, this.output);
  }

  apply(event) {
    if (event.type.endsWith("_arguments.delta")) this.arguments.append(event.delta);
    if (event.type.endsWith("_arguments.done")) {
      this.arguments.element.replaceChildren(...longText(pretty(event.arguments)));
      this.start();
    }
  }

  // Shows the seconds since the arguments were complete.
  start() {
    this.started = performance.now();
    this.state.textContent = "Running…";
    this.timer = setInterval(() => {
      if (!this.element.isConnected) return clearInterval(this.timer);
      this.state.textContent = `Running… ${Math.round((performance.now() - this.started) / 1000)} s`;
    }, TICK_MS);
  }

  complete(item) {
    clearInterval(this.timer);
    this.arguments.element.replaceChildren(...longText(pretty(item.arguments)));
    const state = { completed: "Done", failed: "Failed", incomplete: "Cut off" }[item.status] ?? "Done";
    this.state.textContent = this.started ? `${state} after ${((performance.now() - this.started) / 1000).toFixed(1)} s` : state;
    if (item.error) this.output.replaceChildren(el("p", { class: "bad", dir: "auto" }, ...longText(errorText(item.error))), ...errorImages(item.error));
    else if (item.output != null) this.output.replaceChildren(el("span", { class: "quiet" }, "Result"), ...result(item.output));
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
    const url = imageUrl(part);
    if (url) return imageOf(url);
    return folded(part.type === "text" ? pretty(part.text) : JSON.stringify(part, null, 2));
  });
}

// The data URL of a part that is an image, otherwise null.
function imageUrl(part) {
  const { mimeType, data } = part.type === "resource" ? { mimeType: part.resource?.mimeType, data: part.resource?.blob } : part;
  return ["image", "resource"].includes(part.type) && IMAGE_TYPE.test(mimeType) && typeof data === "string" ? `data:${mimeType};base64,${data}` : null;
}

const imageOf = (url) => el("img", { src: url, alt: "Image of the result", loading: "lazy" });

const errorImages = (error) => (Array.isArray(error.content) ? error.content.map(imageUrl).filter(Boolean).map(imageOf) : []);

// The content parts of an output that is a JSON list of parts, otherwise null.
function contentParts(output) {
  try {
    const value = JSON.parse(output);
    return Array.isArray(value) && value.length && value.every((part) => part && ["text", "image", "audio", "resource", "resource_link"].includes(part.type)) ? value : null;
  } catch {
    return null;
  }
}

function folded(text) {
  const box = el("pre", { tabindex: "0", dir: "auto", role: "region", "aria-label": "Result" }, ...longText(text));
  if (text.length <= MAX_OPEN_CHARS && text.split("\n").length <= MAX_OPEN_LINES) return box;
  return el("details", {}, el("summary", {}, `Show ${text.length.toLocaleString("en")} characters`), box);
}

function errorText(error) {
  if (typeof error === "string") return error;
  if (error.type === "http_error") return `The MCP server answered with the HTTP status ${error.code}: ${error.message}`;
  if (error.type !== "mcp_tool_execution_error") return `The call failed: ${error.message ?? JSON.stringify(error)}`;
  const texts = (error.content ?? []).filter((part) => !imageUrl(part)).map((part) => part.text ?? JSON.stringify(part));
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
