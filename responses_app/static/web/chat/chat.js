// The chat page: the turns of one thread, the run that is under way, and what the person does with them.
import { visible } from "../visible.js";
import { Composer } from "./composer.js";
import { Settings } from "./settings.js";
import { Speaker } from "./speaker.js";
import { stick } from "./stick.js";
import { Threads } from "./threads.js";
import { Turn, textOf } from "./turn.js";

// As in branches.js.
const BRANCH = "branch_of";

class Chat {
  constructor(root) {
    this.urls = root.dataset;
    this.list = root.querySelector(".turns");
    this.note = root.querySelector(".note");
    const form = root.querySelector("form.composer");
    this.settings = new Settings(form);
    this.composer = new Composer(form, { send: (text, images) => this.say(text, images), stop: () => this.stop() });
    this.speaker = new Speaker(root.querySelector("[role=status]"));
    this.threads = new Threads(document.getElementById("threads"));
    this.turns = [];
    this.running = null;
    // Of a thread that was made in one, until it is left by a branch.
    this.conversation = null;
  }

  // What is needed to ask for a response is fetched when one is asked for.
  actions = {
    edit: async (turn, text) => (await import("./branches.js")).edit(this, turn, text),
    regenerate: async (turn) => (await import("./branches.js")).regenerate(this, turn),
    move: (id) => this.open(id, true),
  };

  async run(turn, start, round = 0) {
    await (await import("./run.js")).run(this, turn, start, round);
  }

  async stop() {
    if (this.running) await (await import("./run.js")).stop(this);
  }

  // The thread up to a response, or with `newest` on to the newest that follows it.
  async open(id, newest = false) {
    this.running?.control.abort();
    const url = `${this.urls.chat}/${encodeURIComponent(id)}/turns${newest ? "?newest=1" : ""}`;
    const response = await fetch(url, { redirect: "error" }).catch(() => null);
    if (!response?.ok) return this.missing(response?.status);
    const { turns, earlier, conversation, parameters } = await response.json();
    const notes = await this.settings.adopt(turns.at(-1)?.model, parameters);
    this.cut(0);
    this.conversation = conversation;
    if (earlier) notes.unshift(`${earlier} earlier ${earlier === 1 ? "item" : "items"} in this model’s context aren’t shown here.`);
    this.note.textContent = visible(notes.join(" "));
    for (const data of turns) this.show(data);
    this.point();
    stick(true);
    const last = this.turns.at(-1);
    if (last && !last.response) await this.run(last, { id: last.id });
    // A call that waits in a conversation that is only read is not answered automatically.
    else await this.offer(Infinity);
  }

  missing(status) {
    this.note.textContent = status === 404 ? "This conversation was deleted." : "Couldn’t load this conversation. Reload to retry.";
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
    const unanswered = (this.turns.at(-1)?.calls ?? []).map((card) => card.outputOf("The user did not provide a result for this tool call."));
    return this.send([...unanswered, { type: "message", role: "user", content: parts }]);
  }

  async send(input, { siblings = [], metadata, round = 0 } = {}) {
    const parent = this.turns.at(-1);
    const kept = metadata ?? parent?.metadata ?? {};
    const order = await this.settings.order(input, this.goesOn(), branchOf(kept));
    const turn = this.show({ input, previous: parent?.id ?? null, model: order.model, siblings, metadata: order.metadata ?? {} });
    stick(true);
    await this.run(turn, { order }, round);
  }

  goesOn() {
    return this.conversation ? { conversation: this.conversation } : { previous_response_id: this.turns.at(-1)?.id };
  }

  // The address names the last response, so that a reload comes back to it, and to its stream if it still runs.
  point(fresh = false) {
    const id = this.turns.at(-1)?.id;
    const path = `${this.urls.chat}/${id}`;
    if (!id || location.pathname === path) return;
    const url = path + this.threads.query;
    if (fresh) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    document.title = `${visible(textOf(this.turns[0].input).slice(0, 60)) || "Chat"} – Verbatim`;
    this.threads.mark();
  }

  async offer(round) {
    if (this.turns.at(-1)?.calls.length) await (await import("./tool_calls.js")).offer(this, round);
  }
}

const branchOf = (metadata) => (metadata[BRANCH] ? { [BRANCH]: metadata[BRANCH] } : undefined);

const root = document.getElementById("chat");
// Shown first: what is hidden has no height that the composer could measure.
root.hidden = false;
const chat = new Chat(root);
addEventListener("popstate", () => location.reload());
if (root.dataset.open) chat.open(root.dataset.open);
else chat.composer.focus();
