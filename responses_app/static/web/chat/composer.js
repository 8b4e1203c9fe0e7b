// The form at the foot of the page: the text, its pictures, the keys that send and stop.
const DRAFT = "chat-draft";
const TALLEST = 240;

export class Composer {
  // `actions`: send(text, images), stop().
  constructor(form, actions) {
    this.form = form;
    this.field = form.elements.text;
    this.stopButton = form.querySelector(".stop");
    this.sendButton = form.querySelector(".send");
    this.pictures = { urls: [], take: () => [] };
    // Where no model sees, nobody needs it.
    if (form.querySelector("[data-sees='1']")) import("./pictures.js").then(({ Pictures }) => (this.pictures = new Pictures(form)));
    this.actions = actions;
    this.busy = false;
    form.addEventListener("submit", (event) => this.submit(event));
    this.stopButton.addEventListener("click", () => this.actions.stop());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.typed());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.busy && !event.defaultPrevented) this.actions.stop();
    });
    // What was typed and not sent outlives a reload.
    this.field.value = sessionStorage.getItem(DRAFT) ?? "";
    this.typed();
  }

  key(event) {
    // While a word is being composed, as in Japanese, Enter chooses it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.form.requestSubmit();
  }

  typed() {
    sessionStorage.setItem(DRAFT, this.field.value);
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, TALLEST)}px`;
  }

  submit(event) {
    event.preventDefault();
    const text = this.field.value.trim();
    if (this.busy || (!text && this.pictures.urls.length === 0)) return;
    const images = this.pictures.take();
    this.field.value = "";
    this.typed();
    this.actions.send(text, images);
  }

  running(busy) {
    this.busy = busy;
    this.stopButton.hidden = !busy;
    this.sendButton.hidden = busy;
    // The button that was pressed is gone; whoever pressed it goes on writing.
    if (document.activeElement === document.body) this.focus();
  }

  focus() {
    // On a phone it would open the keyboard over the answer.
    if (matchMedia("(pointer: fine)").matches) this.field.focus({ preventScroll: true });
  }
}
