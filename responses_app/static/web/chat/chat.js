// Chat page: the turns of a thread, the running response and the actions of the user.
import { visible } from "../visible.js";
import { Composer } from "./composer.js";
import { Settings } from "./settings.js";
import { LiveRegion } from "./live_region.js";
import { autoscroll } from "./autoscroll.js";
import { Threads } from "./threads.js";
import { Turn, textOf } from "./turn.js";

// A thread appears after this time, also without colours and math.
const MAX_DRAWING_MS = 1500;

class Chat {
  constructor(root) {
    this.urls = root.dataset;
    this.list = root.querySelector(".turns");
    this.note = root.querySelector(".note");
    const form = root.querySelector("form.composer");
    this.settings = new Settings(form);
    this.composer = new Composer(form, { load: () => Promise.all([import("./send.js"), import("./run.js")]), send: (text, attached) => this.sendMessage(text, attached), stop: () => this.stop() });
    this.liveRegion = new LiveRegion(root.querySelector("[role=status]"));
    this.threads = new Threads(document.getElementById("threads"));
    root.querySelector(".examples")?.addEventListener("click", ({ target }) => target.tagName === "BUTTON" && this.actions.example(target));
    this.turns = [];
    this.running = null;
    // The id of the conversation, until a branch leaves the conversation.
    this.conversation = null;
  }

  actions = {
    edit: async (turn, ...edited) => (await import("./branches.js")).edit(this, turn, ...edited),
    regenerate: async (turn) => (await import("./branches.js")).regenerate(this, turn),
    move: (id) => this.open(id, true),
    example: async (button) => (await import("./examples.js")).send(this, button),
  };

  async run(turn, start, round = 0) {
    await (await import("./run.js")).run(this, turn, start, round);
  }

  async stop() {
    if (this.running) await (await import("./run.js")).stop(this);
  }

  // Opens the thread up to a response, or up to its newest continuation.
  async open(id, newest = false) {
    this.running?.control.abort();
    // Send waits for the turns.
    this.composer.sendButton.disabled = true;
    const url = `${this.urls.chat}/${encodeURIComponent(id)}/turns${newest ? "?newest=1" : ""}`;
    const response = await fetch(url, { redirect: "error" }).catch(() => null);
    if (!response?.ok) return this.showLoadError(response?.status);
    const { turns, newer, earlier, conversation, parameters } = await response.json();
    const notes = await (await import("./opened_settings.js")).load(this.settings, turns.at(-1)?.model, parameters);
    this.truncate(0);
    this.conversation = conversation;
    if (earlier) notes.unshift(`${earlier} earlier ${earlier === 1 ? "item" : "items"} in this model’s context aren’t shown here.`);
    this.note.textContent = visible(notes.join(" "));
    await this.addTurns(turns);
    this.updateUrl();
    if (newer) (await import("./branches.js")).showNewer(this, newer);
    autoscroll(true);
    this.composer.sendButton.disabled = false;
    const last = this.turns.at(-1);
    if (last && !last.response) await this.run(last, { id: last.id });
    // Opening a conversation runs no tools.
    else await this.answerCalls(Infinity);
  }

  showLoadError(status) {
    this.note.textContent = status === 404 ? "This conversation was deleted." : "Couldn’t load this conversation. Reload to retry.";
  }

  // Adds the turns at once, with colours and math.
  async addTurns(turns) {
    const hidden = new DocumentFragment();
    for (const data of turns) this.addTurn(data, hidden);
    await Promise.race([Promise.all(this.turns.map((turn) => turn.drawn)), new Promise((resolve) => setTimeout(resolve, MAX_DRAWING_MS))]);
    this.list.append(hidden);
  }

  addTurn(data, list = this.list) {
    const turn = new Turn({ ...data, number: this.turns.length + 1 }, this.actions, this.urls);
    turn.answered = this.answerCards(turn.input);
    this.turns.push(turn);
    list.append(turn.element);
    if (turn.response) turn.complete(turn.response);
    return turn;
  }

  // Closes the calls that `input` answers.
  answerCards(input) {
    const cards = this.turns.flatMap((turn) => [...turn.blocks.values()]).filter((card) => input.some((item) => card.answers(item)));
    for (const card of cards) card.answer();
    return cards;
  }

  truncate(length) {
    for (const turn of this.turns.splice(length)) turn.element.remove();
  }

  // Modules for requests are loaded on first use.
  async sendMessage(text, attached = []) {
    return (await import("./send.js")).sendMessage(this, text, attached);
  }

  async send(input, options) {
    return (await import("./send.js")).send(this, input, options);
  }

  // For a reload.
  updateUrl(isNew = false) {
    const id = this.turns.at(-1)?.id;
    const path = `${this.urls.chat}/${id}`;
    if (!id || location.pathname === path) return;
    history[isNew ? "pushState" : "replaceState"](null, "", path + this.threads.query);
    document.title = `${visible(textOf(this.turns[0].input).slice(0, 60)) || "Chat"} · Verbatim`;
    this.threads.mark();
  }

  async answerCalls(round) {
    const turn = this.turns.at(-1);
    if (!turn?.calls.length) return;
    const calls = import("./tool_calls.js").then(({ answerCalls }) => answerCalls(this, turn, round));
    await (await calls.finally(() => turn.showFoot()))?.();
  }
}

const root = document.getElementById("chat");
// The composer cannot measure a hidden field.
root.hidden = false;
const chat = new Chat(root);
// A module that could not be fetched.
addEventListener("unhandledrejection", ({ reason }) => /module/i.test(reason?.message) && (chat.composer.notice.textContent = "Can’t reach the server. Try again."));
// The link to the main content is a step too.
addEventListener("popstate", () => location.hash || location.reload());
if (root.dataset.open) chat.open(root.dataset.open);
else chat.composer.focus();
