// Open tool calls: demo tools run automatically, all other calls have a field for the result, and approvals have buttons.
import { button, el } from "./dom.js";
import { outputOf } from "./answers.js";
import { autoscroll } from "./autoscroll.js";

// After this number of consecutive automatic results the user submits the results, so that a loop of calls ends.
const MAX_AUTOMATIC_ROUNDS = 8;

// Returns the function that sends the results, if all calls ran. A message that was sent meanwhile has answered the calls of `turn`.
export async function answerCalls(chat, turn, round) {
  const isAnswered = () => chat.turns.at(-1) !== turn;
  if (isAnswered()) return;
  const { calls } = turn;
  // The fragments are complete before forms are added.
  await turn.settled;
  await Promise.all(calls.map((card) => card.replaced));
  const outputs = new Map();
  const runs = chat.settings.runsToolsAutomatically && round < MAX_AUTOMATIC_ROUNDS && turn.status === "completed";
  const { output } = runs ? await import("./tools.js") : {};
  for (const card of calls) {
    // An approval is a decision of the user.
    const result = runs && !card.isApproval ? await output(card.item) : null;
    if (result !== null) outputs.set(card, result);
  }
  if (isAnswered()) return;
  if (outputs.size === calls.length) return () => sendOutputs(chat, outputs, round + 1);
  const fields = calls.filter((card) => !outputs.has(card)).map((card) => show(card, (answer) => {
    outputs.set(card, answer);
    card.answer();
    if (outputs.size === calls.length) sendOutputs(chat, outputs, 0);
  }));
  // Not away from a text that is being written.
  if (!document.activeElement.value) fields[0].focus({ preventScroll: true });
  autoscroll();
  const approval = calls.find((card) => card.open && card.isApproval);
  if (approval) chat.liveRegion.announce(`The model wants to run ${approval.item.name} of ${approval.item.server_label}. Approve or deny.`);
}

function sendOutputs(chat, outputs, round) {
  autoscroll();
  return chat.send([...outputs].map(([card, answer]) => outputOf(card, answer)), { round });
}

const show = (card, onAnswer) => (card.isApproval ? showDecision(card, onAnswer) : showForm(card, onAnswer));

// Shows the buttons of an approval. `onDecision` gets {approve, reason}.
function showDecision(card, onDecision) {
  const { name } = card.item;
  const reason = el("input", { "aria-label": `Reason to deny ${name}`, placeholder: "Reason to deny (optional)" });
  const decide = (approve) => onDecision(approve ? { approve } : { approve, reason: reason.value.trim() || undefined });
  const buttons = [
    button("Approve", () => decide(true), { class: "main", "aria-label": `Approve ${name}` }),
    button("Deny", () => decide(false), { class: "danger", "aria-label": `Deny ${name}` }),
  ];
  const group = el("div", { class: "row", role: "group", "aria-label": "Decision" }, ...buttons, reason);
  card.output.replaceChildren(el("div", { "data-form": "" }, el("p", {}, "The model wants to run this tool."), group));
  return card.element;
}

// Shows the form for the result of a call. `onSubmit` gets the text.
function showForm(card, onSubmit) {
  const field = el("textarea", { rows: "2", required: true, "aria-label": `Result of ${card.item.name}`, placeholder: "Tool result" });
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) onSubmit(field.value);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  card.output.replaceChildren(el("form", { onsubmit: submit, "data-form": "" }, field, el("button", {}, "Submit result")));
  return field;
}
