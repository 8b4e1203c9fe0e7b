// Running response: create or follow, show, stop.
import { LOST, TERMINAL, follow } from "./follow.js";
import { Api, ApiError } from "./protocol.js";
import { autoscroll } from "./autoscroll.js";
import { button, el, visible } from "./dom.js";

// `start` as in follow.js. `round` counts consecutive automatic tool results.
export async function run(chat, turn, start, round) {
  const running = (chat.running = { turn, control: new AbortController(), stopped: false });
  chat.composer.setBusy(true);
  chat.liveRegion.announce("The model is responding.");
  try {
    await show(chat, running, start);
  } catch (error) {
    if (!running.control.signal.aborted) onError(chat, turn, start, await readableError(error, start.body));
  } finally {
    release(chat, running);
  }
  if (turn.response && !running.control.signal.aborted) await chat.answerCalls(round);
}

export async function stop(chat) {
  const { running } = chat;
  running.stopped = true;
  // Without an id yet, `onCreated` stops the response.
  if (!running.turn.id) return running.giveUp?.();
  chat.liveRegion.announce("Stopping…");
  try {
    await api(chat).cancel(running.turn.id);
  } catch (error) {
    // 400: the response has already ended, as its stream shows.
    if (!(error instanceof ApiError && error.status === 400)) fail(running.turn, await readableError(error), () => chat.stop());
  }
}

const api = (chat) => (chat.client ??= new Api(chat.urls.api, chat.urls.secret));

async function show(chat, running, start) {
  const { turn, control } = running;
  const onRetry = (retries) => turn.outcome.replaceChildren(...(retries ? [el("p", { class: "warn" }, LOST)] : []));
  const onRefused = async (error) => error.headers && (await import("./resend.js")).resendMessage(chat, running, error);
  for await (const event of follow(api(chat), start, { signal: control.signal, onRetry, onRefused })) {
    turn.apply(event);
    if (event.type === "response.created" && start.body) onCreated(chat, running);
    if (event.type.endsWith(".delta")) autoscroll();
    else if (TERMINAL.has(event.type)) onEnded(chat, running, event.response);
  }
}

function onCreated(chat, { turn, stopped }) {
  chat.composer.keepDraft();
  if (turn.siblings.length) turn.siblings = [...turn.siblings, turn.id];
  chat.updateUrl(chat.turns.length === 1);
  chat.threads.refresh();
  if (turn.asked?.querySelector(".message > .quiet")) import("./stored_message.js").then(({ show }) => show(turn, chat.urls.chat));
  // The answers to calls are stored now.
  for (const card of turn.answered) card.refresh(`?answer=${turn.id}`).then(() => autoscroll());
  if (stopped) chat.stop();
}

async function onEnded(chat, running, response) {
  const { turn } = running;
  turn.response = response;
  release(chat, running);
  turn.complete(response);
  chat.threads.refresh();
  await turn.settled;
  autoscroll();
  await turn.timed;
  const said = [turn.outcome.querySelector("p:not([role])")?.textContent, turn.text.trim()];
  chat.liveRegion.announce(said.filter(Boolean).join(" ") || "The response is complete.");
}

function release(chat, running) {
  if (chat.running !== running) return;
  chat.running = null;
  chat.composer.setBusy(false);
}

function onError(chat, turn, start, error) {
  // Follow an existing response, create a missing one; another tab may have decided.
  const id = turn.id ?? (turn.canRepeat ? null : turn.previous);
  fail(turn, error, () => {
    turn.outcome.replaceChildren();
    return id ? chat.open(id) : chat.run(turn, start);
  });
  chat.liveRegion.announce(error.message);
}

function fail(turn, error, retry) {
  const text = el("p", { class: "bad", role: "alert" }, visible(error.message));
  turn.outcome.replaceChildren(text, button("Try again", retry));
  turn.showActions({ canRegenerate: false });
}

async function readableError(error, body) {
  if (error instanceof TypeError) return new Error("Can’t reach the server.");
  return error instanceof ApiError ? (await import("./request_error.js")).requestError(error, body) : error;
}
