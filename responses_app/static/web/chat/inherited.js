// Request parameters of an opened conversation: into the controls where there are any; the others are listed, and can be removed.
import { button, el } from "./dom.js";
import { demoName } from "./tools.js";

const LONGEST = 160;
const MOST_METADATA = 16;

// Fills the form, lists what has no control, and returns a sentence about that.
export function inherit(settings, { instructions, temperature, max_output_tokens, reasoning, tools = [], ...others }) {
  const { effort, ...rest } = reasoning ?? {};
  const own = tools.filter((tool) => !demoName(tool));
  const given = { ...others, ...(Object.keys(rest).length ? { reasoning: rest } : {}), ...(own.length ? { tools: own } : {}) };
  settings.fill({ instructions, temperature, max_output_tokens, effort, tools: tools.map(demoName).filter(Boolean) }, given);
  list(settings);
  const names = Object.keys(given);
  return names.length ? [`Also sent with your messages, as in the original request: ${names.join(", ")}. See Settings.`] : [];
}

// The body of a request with what was inherited: what the form says goes first.
export function completed(order, { reasoning, tools = [], tool_choice, metadata, ...others }) {
  const said = Object.fromEntries(Object.entries(order).filter(([, value]) => value !== undefined));
  const all = { ...metadata, ...said.metadata };
  const own = new Set(tools.map((tool) => tool.name));
  const isResult = order.input.every((item) => item.type?.endsWith("_output"));
  return {
    ...others,
    ...said,
    ...(reasoning ? { reasoning: { ...reasoning, ...said.reasoning } } : {}),
    ...(tools.length ? { tools: [...tools, ...(said.tools ?? []).filter((tool) => !own.has(tool.name))] } : {}),
    // A choice that forces a call would do so again behind every result.
    ...(tool_choice && !isResult ? { tool_choice } : {}),
    // A request has no room for more pairs: then a branch is not marked as one.
    metadata: Object.keys(all).length > MOST_METADATA ? metadata : all,
  };
}

function list(settings) {
  const section = settings.form.querySelector(".inherited");
  const names = Object.keys(settings.carried);
  section.hidden = names.length === 0;
  section.querySelector("ul").replaceChildren(...names.map((name) => entry(settings, name)));
}

function entry(settings, name) {
  const remove = () => {
    delete settings.carried[name];
    // A choice among tools is refused where there are none.
    if (name === "tools") delete settings.carried.tool_choice;
    list(settings);
  };
  const text = shown(name, settings.carried[name]);
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return el("li", {}, el("code", {}, name), el("span", { dir: "auto" }, cut), button("×", remove, { class: "plain", "aria-label": `Remove ${name}` }));
}

function shown(name, value) {
  if (name === "tools") return value.map((tool) => tool.name ?? tool.type).join(", ");
  if (name === "metadata") return Object.entries(value).map((pair) => pair.join(": ")).join(", ");
  if (name === "text" && value.format?.name) return `${value.format.type} “${value.format.name}”`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
