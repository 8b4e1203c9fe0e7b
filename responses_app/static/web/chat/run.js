// A response that is under way: asked for or followed, shown as it comes, stopped.
import { TERMINAL, follow } from "./follow.js";
import { Api, Refused } from "./protocol.js";
import { stick } from "./stick.js";

// `start` is as in follow.js; `round` counts the answers to tools that ran automatically.
export async function run(chat, turn, start, round) {
  const running = (chat.running = { turn, control: new AbortController(), stopped: false });
  chat.composer.running(true);
  chat.speaker.say("The model is responding.");
  try {
    await listen(chat, running, start);
  } catch (error) {
    if (!running.control.signal.aborted) lost(chat, turn, start, readable(error));
  } finally {
    free(chat, running);
  }
  if (turn.response && !running.control.signal.aborted) await chat.offer(round);
}

export async function stop(chat) {
  const { running } = chat;
  running.stopped = true;
  // Before it has an id there is nothing to stop; it is stopped as soon as it has one.
  if (!running.turn.id) return;
  chat.speaker.say("Stopping…");
  try {
    await api(chat).cancel(running.turn.id);
  } catch (error) {
    // It may have ended in the meantime, and then its stream says so.
    if (!(error instanceof Refused && error.status === 400)) running.turn.lose(readable(error), () => chat.stop());
  }
}

const api = (chat) => (chat.client ??= new Api(chat.urls.api, chat.urls.secret));

async function listen(chat, running, start) {
  const { turn, control } = running;
  const trouble = (misses) => turn.trouble(misses);
  for await (const event of follow(api(chat), start, { signal: control.signal, trouble })) {
    turn.hear(event);
    if (event.type === "response.created" && start.order) began(chat, running);
    if (event.type.endsWith(".delta")) stick();
    else if (TERMINAL.has(event.type)) ended(chat, running, event.response);
  }
}

function began(chat, { turn, stopped }) {
  if (turn.siblings.length) turn.siblings = [...turn.siblings, turn.id];
  chat.point(chat.turns.length === 1);
  chat.threads.refresh();
  if (stopped) chat.stop();
}

function ended(chat, running, response) {
  const { turn } = running;
  turn.response = response;
  free(chat, running);
  turn.end(response);
  stick();
  chat.speaker.say(turn.text || "The response is complete.");
  chat.threads.refresh();
}

function free(chat, running) {
  if (chat.running !== running) return;
  chat.running = null;
  chat.composer.running(false);
}

function lost(chat, turn, start, error) {
  const { id } = turn;
  // One that exists is followed again; one that does not is asked for again.
  turn.lose(error, () => {
    turn.outcome.replaceChildren();
    return id ? chat.open(id) : chat.run(turn, start);
  });
  chat.speaker.say(error.message);
}

function readable(error) {
  return error instanceof TypeError ? new Error("Can’t reach the server.") : error;
}
