// The chat page: the turns of one thread, the run that is under way, and what the person does with them.
import { visible } from "../visible.js";
import { Composer } from "./composer.js";
import { TERMINAL, follow } from "./follow.js";
import { Api, Refused } from "./protocol.js";
import { Settings } from "./settings.js";
import { Speaker } from "./speaker.js";
import { stick } from "./stick.js";
import { Threads } from "./threads.js";
import { Turn, textOf } from "./turn.js";

// A model that calls tools without end is asked about after so many answers in a row.
const ROUNDS = 8;
const BRANCH = "branch_of";

class Chat {
  constructor(root) {
    this.urls = root.dataset;
    this.list = root.querySelector(".turns");
    this.note = root.querySelector(".note");
    this.form = root.querySelector("form.composer");
    this.api = new Api(this.urls.api, this.urls.secret);
    this.settings = new Settings(this.form);
    this.composer = new Composer(this.form, { send: (text, images) => this.say(text, images), stop: () => this.stop() });
    this.speaker = new Speaker(root.querySelector("[role=status]"));
    this.threads = new Threads(document.getElementById("threads"));
    this.turns = [];
    this.running = null;
    // Of a thread that was made in one, until it is left by a branch.
    this.conversation = null;
  }

  actions = {
    edit: (turn, text) => this.branch(turn, edited(turn.input, text)),
    regenerate: (turn) => this.branch(turn, turn.input.map(anew)),
    move: (id) => this.open(id, true),
  };

  // The thread up to a response, or with `newest` on to the newest that follows it.
  async open(id, newest = false) {
    this.running?.control.abort();
    const url = `${this.urls.chat}/${encodeURIComponent(id)}/turns${newest ? "?newest=1" : ""}`;
    const response = await fetch(url, { redirect: "error" }).catch(() => null);
    if (!response?.ok) return this.missing(response?.status);
    const { turns, earlier, conversation } = await response.json();
    this.cut(0);
    this.conversation = conversation;
    this.note.textContent = earlier ? `The model was told ${earlier} earlier items, which are not part of this thread.` : "";
    for (const data of turns) this.show(data);
    this.point();
    stick(true);
    const last = this.turns.at(-1);
    this.settings.choose(last?.model);
    if (last && !last.response) await this.run(last, { id: last.id });
    // What waits in a thread that is only read is not answered by itself.
    else await this.offer(ROUNDS);
  }

  missing(status) {
    this.note.textContent = status === 404 ? "There is no such response any more." : "The thread could not be read. Load the page again.";
  }

  show(data) {
    const turn = new Turn(data, this.actions, this.urls);
    this.answerCards(turn.input);
    this.turns.push(turn);
    this.list.append(turn.element);
    if (turn.response) turn.end(turn.response);
    return turn;
  }

  // Outputs stand in the cards of the calls that they answer.
  answerCards(input) {
    const outputs = input.filter((item) => item.type?.endsWith("_output"));
    for (const card of this.turns.flatMap((turn) => turn.calls)) {
      const found = outputs.find((item) => item.call_id === card.item.call_id);
      if (found) card.answer(found.output);
    }
  }

  cut(length) {
    for (const turn of this.turns.splice(length)) turn.element.remove();
  }

  say(text, images = []) {
    const parts = [...images.map((url) => ({ type: "input_image", image_url: url, detail: "auto" })), ...(text ? [{ type: "input_text", text }] : [])];
    // A call without an output cannot be passed over: the model is told that nobody answered it.
    const unanswered = (this.turns.at(-1)?.calls ?? []).map((card) => outputOf(card.item, "Nobody answered this call."));
    return this.send([...unanswered, { type: "message", role: "user", content: parts }]);
  }

  // Another child of the same parent.
  branch(turn, input) {
    this.running?.control.abort();
    const metadata = turn.previous ? turn.metadata : { ...turn.metadata, [BRANCH]: turn.metadata[BRANCH] ?? turn.id };
    const siblings = turn.siblings.length ? turn.siblings : [turn.id];
    const at = this.turns.indexOf(turn);
    this.conversation = null;
    // The cards that it answered wait again, until the new one answers them.
    this.cut(at);
    return this.send(input, { siblings: turn.id ? siblings : [], metadata });
  }

  async send(input, { siblings = [], metadata } = {}) {
    const parent = this.turns.at(-1);
    const kept = metadata ?? parent?.metadata ?? {};
    const own = kept[BRANCH] ? { [BRANCH]: kept[BRANCH] } : undefined;
    const order = await this.settings.order(input, this.goesOn(), own);
    const turn = this.show({ input, previous: parent?.id ?? null, model: order.model, siblings, metadata: own ?? {} });
    stick(true);
    await this.run(turn, { order });
  }

  goesOn() {
    return this.conversation ? { conversation: this.conversation } : { previous_response_id: this.turns.at(-1)?.id };
  }

  async run(turn, start, round = 0) {
    const running = (this.running = { turn, control: new AbortController(), stopped: false });
    this.composer.running(true);
    this.speaker.say("The model is answering.");
    try {
      await this.listen(running, start);
    } catch (error) {
      if (!running.control.signal.aborted) this.lost(turn, start, error);
    } finally {
      this.free(running);
    }
    if (turn.response && !running.control.signal.aborted) await this.offer(round);
  }

  free(running) {
    if (this.running !== running) return;
    this.running = null;
    this.composer.running(false);
  }

  async listen(running, start) {
    const { turn, control } = running;
    const trouble = (misses) => turn.trouble(misses);
    for await (const event of follow(this.api, start, { signal: control.signal, trouble })) {
      turn.hear(event);
      if (event.type === "response.created" && start.order) this.began(running);
      if (event.type.endsWith(".delta")) stick();
      else if (TERMINAL.has(event.type)) this.ended(running, event.response);
    }
  }

  began({ turn, stopped }) {
    if (turn.siblings.length) turn.siblings = [...turn.siblings, turn.id];
    this.point(this.turns.length === 1);
    this.threads.refresh();
    if (stopped) this.stop();
  }

  ended(running, response) {
    const { turn } = running;
    turn.response = response;
    this.free(running);
    turn.end(response);
    stick();
    this.speaker.say(turn.text || "The answer is complete.");
    this.threads.refresh();
  }

  lost(turn, start, error) {
    const { id } = turn;
    // One that exists is followed again; one that does not is asked for again.
    turn.lose(readable(error), () => {
      turn.outcome.replaceChildren();
      if (id) return this.open(id);
      return this.run(turn, start);
    });
    this.speaker.say(error.message);
  }

  // The address names the last response, so that a reload comes back to it, and to its stream if it still runs.
  point(fresh = false) {
    const id = this.turns.at(-1)?.id;
    const url = `${this.urls.chat}/${id}`;
    if (!id || location.pathname === url) return;
    if (fresh) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    document.title = `${visible(textOf(this.turns[0].input).slice(0, 60)) || "Chat"} – Verbatim`;
    this.threads.mark();
  }

  async stop() {
    const running = this.running;
    if (!running) return;
    running.stopped = true;
    // Before it has an id there is nothing to stop; it is stopped as soon as it has one.
    if (!running.turn.id) return;
    this.speaker.say("Stopping.");
    try {
      await this.api.cancel(running.turn.id);
    } catch (error) {
      // It may have ended in the meantime, and then its stream says so.
      if (!(error instanceof Refused && error.status === 400)) running.turn.lose(readable(error), () => this.stop());
    }
  }

  // Calls that wait: the demonstration tools answer by themselves, for the others there are fields.
  async offer(round = 0) {
    const last = this.turns.at(-1);
    const calls = last?.calls ?? [];
    if (calls.length === 0) return;
    const outputs = new Map();
    const byItself = this.settings.byItself && round < ROUNDS && last.status === "completed";
    const { output } = byItself ? await import("./tools.js") : {};
    for (const card of calls) {
      const said = byItself ? output(card.item) : null;
      if (said !== null) outputs.set(card, said);
    }
    if (outputs.size === calls.length) return this.giveOutputs(outputs, round + 1);
    const fields = calls.filter((card) => !outputs.has(card)).map((card) => card.ask((text) => {
      outputs.set(card, text);
      card.answer(text);
      if (outputs.size === calls.length) this.giveOutputs(outputs, 0);
    }));
    fields[0].focus({ preventScroll: true });
  }

  async giveOutputs(outputs, round) {
    const input = [...outputs].map(([card, text]) => outputOf(card.item, text));
    const parent = this.turns.at(-1);
    const order = await this.settings.order(input, this.goesOn(), parent.metadata[BRANCH] ? { [BRANCH]: parent.metadata[BRANCH] } : undefined);
    const turn = this.show({ input, previous: parent.id, model: order.model, metadata: order.metadata ?? {} });
    for (const [card, text] of outputs) card.answer(text);
    stick();
    await this.run(turn, { order }, round);
  }
}

const outputOf = (call, text) => ({ type: `${call.type}_output`, call_id: call.call_id, output: text });

// The same item once more, and not the stored one.
function anew({ id, status, ...item }) {
  return item;
}

function edited(input, text) {
  const last = input.findLast((item) => item.role === "user");
  return input.map((item) => {
    if (item !== last) return anew(item);
    const kept = typeof item.content === "string" ? [] : item.content.filter((part) => part.type !== "input_text");
    return { ...anew(item), content: [...kept, { type: "input_text", text }] };
  });
}

function readable(error) {
  return error instanceof TypeError ? new Error("The server cannot be reached.") : error;
}

const root = document.getElementById("chat");
const chat = new Chat(root);
root.hidden = false;
addEventListener("popstate", () => location.reload());
if (root.dataset.open) chat.open(root.dataset.open);
else chat.composer.focus();
