// Requests of a column, loaded with the first run: creates the responses of a run, or follows one, and shows the server's result.
import { TERMINAL, follow as eventsOf } from "../chat/follow.js";
import { enhance } from "./column.js";
import { LiveOutput } from "./live.js";

// After this number of consecutive recorded answers the run stops, so that a loop of calls ends.
const MAX_ROUNDS = 16;

/** Shows a run to its end. `start` is {body} to create a response, or {id}. The result of earlier rounds stays. */
export async function follow(column, control, start, round) {
  const { page } = column;
  const { signal } = control;
  const live = new LiveOutput(column.output, page.urls.responses, round > 0);
  // Compared responses, and those that a person may only read, have no button.
  const stop = column.element.querySelector("[data-stop]") ?? {};
  stop.hidden = false;
  column.say("Running");
  const onRetry = (retries) => {
    live.showRetry(retries);
    column.say(retries ? "Connection lost" : "Running");
  };
  const shown = { place: live.refused, subject: "The run", announce: () => (live.showWait(true), column.say("Waiting")) };
  const onRefused = async (error) => error.headers && (await import("../chat/resend.js")).waitToResend(column, error, shown);
  column.last = start.id;
  let isStarted = Boolean(start.id);
  try {
    for await (const event of eventsOf(page.api, start, { signal, onRetry, onRefused })) {
      if (event.type === "response.created") column.onCreated(event.response.id);
      // The edits are stored with the run.
      if (start.body && !round && !isStarted) delete sessionStorage[location.pathname];
      isStarted = true;
      live.apply(event);
      if (TERMINAL.has(event.type)) break;
    }
    await showResult(column, round, signal);
  } catch (error) {
    if (!signal.aborted) onError(column, error, isStarted ? { id: column.last } : start, round);
  } finally {
    if (column.control === control) (column.keepFocus(stop), (stop.hidden = true));
  }
}

async function showResult(column, round, signal) {
  const query = new URLSearchParams({ run: column.value, place: column.element.dataset.pane, tools: column.page.mode });
  const response = await fetch(`${column.page.urls.result}?${query}`, { signal });
  if (!response.ok) throw new Error(`The server returned an error (HTTP ${response.status}).`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  column.keepFocus(column.output);
  column.output.replaceChildren(page.querySelector(".result"));
  enhance(column.output);
  const { next } = column.result.dataset;
  if (next && round < MAX_ROUNDS) await continueWith(column, JSON.parse(next), round + 1);
  else column.say(column.result.querySelector(".status").textContent);
}

/** Answers the calls of the last response. */
export async function continueWith(column, input, round = 1) {
  const { parameters, last, of, run } = column.result.dataset;
  const { tool_choice, ...body } = JSON.parse(parameters);
  // Behind a result, a forced call would be made again without end.
  const choice = ["auto", "none"].includes(tool_choice) ? { tool_choice } : {};
  column.uid = run;
  await column.follow({ body: column.page.asRun({ ...body, ...choice, previous_response_id: last, input }, of) }, round);
}

function onError(column, error, start, round) {
  const problem = error instanceof TypeError ? new Error("Can’t reach the server.") : error;
  // The same request would be refused again.
  const isFinal = error.status >= 400 && error.status < 500 && ![401, 429].includes(error.status);
  column.showError(problem, start, isFinal ? null : round);
  column.page.onError(error);
}
