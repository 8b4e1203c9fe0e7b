// Request parameters of an opened conversation. Parameters without a control are listed in the settings and can be removed.
import { icon } from "../icon.js";
import { addStyle } from "../style.js";
import { button, el } from "./dom.js";
import { fill } from "./opened_settings.js";

addStyle(new URL("carried_parameters.css", import.meta.url).href);

const MAX_VALUE_CHARS = 160;
// Limit of the API.
const MAX_METADATA_PAIRS = 16;

// Fills the form, lists the other parameters, and returns a note about them.
export async function carryOver(settings, { instructions, temperature, max_output_tokens, reasoning, tools = [], include = [], ...others }) {
  const { effort, ...otherReasoning } = reasoning ?? {};
  const { demoTools, serverTools, includes } = tools.length ? await recognize(settings, tools) : { demoTools: [], serverTools: [], includes: [] };
  const servers = tools.filter((tool) => isOfServer(settings, tool));
  const ownTools = tools.filter((tool) => ![...demoTools.map((demo) => demo.tool), ...servers, ...serverTools].includes(tool));
  const parts = include.filter((part) => !includes.includes(part));
  const carried = { ...others, ...(Object.keys(otherReasoning).length ? { reasoning: otherReasoning } : {}), ...(ownTools.length ? { tools: ownTools } : {}), ...(parts.length ? { include: parts } : {}) };
  fill(
    settings,
    {
      ...{ instructions, temperature, max_output_tokens, effort },
      tools: demoTools.map((demo) => demo.name),
      servers: servers.map((tool) => tool.server_label),
      offered: serverTools.map((tool) => tool.type),
      store: serverTools.find((tool) => tool.type === "file_search")?.vector_store_ids[0],
    },
    carried,
  );
  render(settings);
  const names = Object.keys(carried);
  return names.length ? [`Carried over from the original request: ${names.join(", ")}.`] : [];
}

// Returns true for a tool that the form declares in the same way.
function isOfServer(settings, { type, server_label, server_url, connector_id, allowed_tools, require_approval }) {
  const isPlain = !server_url && !connector_id && !allowed_tools && (require_approval ?? "always") === "always";
  return type === "mcp" && isPlain && settings.boxes("servers").some((box) => box.value === server_label);
}

// The tools that the form declares in the same way: demo tools with their names, and server tools with their includes.
async function recognize(settings, tools) {
  const [{ demoName }, { includesOf, isDeclaredByForm }] = await Promise.all([import("./tools.js"), import("./server_tools.js")]);
  const offers = { names: settings.boxes("offered").map((box) => box.value), stores: [...(settings.form.elements.store?.options ?? [])].map((option) => option.value) };
  const serverTools = tools.filter((tool) => isDeclaredByForm(tool, offers));
  return { demoTools: tools.map((tool) => ({ tool, name: demoName(tool) })).filter(({ name }) => name), serverTools, includes: includesOf(serverTools) };
}

const keyOf = (tool) => tool.name ?? `${tool.type} ${tool.server_label ?? ""}`;

// Merges the carried parameters into the body of a request. Values of the form take precedence.
export function withCarried(body, { reasoning, tools = [], include = [], tool_choice, metadata, ...others }) {
  const explicit = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
  const all = { ...metadata, ...explicit.metadata };
  const chosenKeys = new Set(tools.map(keyOf));
  const isResult = body.input.every((item) => item.type?.endsWith("_output") || item.type === "mcp_approval_response");
  return {
    ...others,
    ...explicit,
    ...(reasoning ? { reasoning: { ...reasoning, ...explicit.reasoning } } : {}),
    ...(tools.length ? { tools: [...tools, ...(explicit.tools ?? []).filter((tool) => !chosenKeys.has(keyOf(tool)))] } : {}),
    ...(include.length ? { include: [...new Set([...include, ...(explicit.include ?? [])])] } : {}),
    // After a tool result, a forced tool choice would call the tool again without end.
    ...(tool_choice && !isResult ? { tool_choice } : {}),
    // Above the limit the branch key is left out.
    metadata: Object.keys(all).length > MAX_METADATA_PAIRS ? metadata : all,
  };
}

function render(settings) {
  const section = settings.form.querySelector(".inherited");
  const names = Object.keys(settings.carried);
  section.hidden = names.length === 0;
  section.querySelector("ul").replaceChildren(...names.map((name) => entry(settings, name)));
}

function entry(settings, name) {
  const remove = () => {
    delete settings.carried[name];
    // The API rejects a tool choice without tools.
    if (name === "tools") delete settings.carried.tool_choice;
    render(settings);
  };
  const text = format(name, settings.carried[name]);
  const truncated = text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
  return el("li", {}, el("code", {}, name), el("span", { dir: "auto" }, truncated), button(icon("close"), remove, { class: "plain", "aria-label": `Remove ${name}` }));
}

function format(name, value) {
  if (name === "tools") return value.map((tool) => tool.name ?? tool.server_label ?? tool.type).join(", ");
  if (name === "metadata") return Object.entries(value).map((pair) => pair.join(": ")).join(", ");
  if (name === "text" && value.format?.name) return `${value.format.type} “${value.format.name}”`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
