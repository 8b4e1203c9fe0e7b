// Create requests of the chat.
import { autoscroll } from "./autoscroll.js";
import { draft } from "./draft.js";

// As in branches.js.
const BRANCH = "branch_of";

export async function sendMessage(chat, text, attached) {
  const parts = [...attached, ...(text ? [{ type: "input_text", text }] : [])];
  // Every call needs an output before the next message.
  const calls = chat.turns.at(-1)?.calls ?? [];
  const unanswered = calls.length ? (await import("./answers.js")).unanswered(calls) : [];
  return send(chat, [...unanswered, { type: "message", role: "user", content: parts }]);
}

export async function send(chat, input, { siblings = [], metadata, round = 0 } = {}) {
  // Turns that were refused have no id.
  const parent = chat.turns.findLast(({ id }) => id);
  if (parent !== chat.turns.at(-1)) input = (await import("./resend.js")).afterRefused(chat.turns, parent, input);
  const inherited = metadata ?? parent?.metadata ?? {};
  const previous = chat.conversation ? { conversation: chat.conversation } : { previous_response_id: parent?.id };
  const body = await requestBody(chat.settings, input, previous, branchOf(inherited));
  const turn = chat.addTurn({ input, previous: parent?.id ?? null, model: body.model, siblings, metadata: body.metadata ?? {}, draft });
  autoscroll(true);
  await chat.run(turn, { body }, round);
}

const branchOf = (metadata) => (metadata[BRANCH] ? { [BRANCH]: metadata[BRANCH] } : undefined);

// The body of a create request. Empty fields are left out; `previous` names the conversation or the previous response.
async function requestBody(settings, input, previous, metadata) {
  const demoTools = settings.tools.length ? (await import("./tools.js")).declared(settings.tools) : [];
  const serverTools = await declareServerTools(settings);
  const tools = [...demoTools, ...mcpTools(settings), ...serverTools.tools];
  const number = (name) => (settings.value(name) === "" ? undefined : Number(settings.value(name)));
  const body = {
    model: settings.value("model"),
    input,
    stream: true,
    store: true,
    // A background response survives a reload and a lost connection.
    background: true,
    stream_options: { include_obfuscation: false },
    ...previous,
    instructions: settings.value("instructions") || undefined,
    temperature: number("temperature"),
    max_output_tokens: number("max_output_tokens"),
    reasoning: settings.value("effort") ? { effort: settings.value("effort") } : undefined,
    tools: tools.length ? tools : undefined,
    include: serverTools.include.length ? serverTools.include : undefined,
    metadata,
  };
  return Object.keys(settings.carried).length ? (await import("./carried_parameters.js")).withCarried(body, settings.carried) : body;
}

const mcpTools = (settings) => settings.checked("servers").map((server_label) => ({ type: "mcp", server_label, require_approval: "always" }));

async function declareServerTools(settings) {
  const names = settings.checked("offered");
  const store = settings.form.elements.store?.value;
  return names.length || store ? (await import("./server_tools.js")).declared(names, store) : { tools: [], include: [] };
}
