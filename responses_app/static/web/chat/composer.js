// The form at the foot of the page: the text, its images, the keys that send and stop.
const DRAFT = "chat-draft";
const TALLEST = 240;

export class Composer {
  // `actions`: send(text, images), stop().
  constructor(form, actions) {
    this.form = form;
    this.field = form.elements.text;
    this.stopButton = form.querySelector(".stop");
    this.sendButton = form.querySelector(".send");
    this.notice = form.querySelector(".notice");
    this.pictures = { urls: [], take: () => [] };
    if (form.querySelector("[data-sees='1']")) this.loadPictures();
    this.actions = actions;
    this.busy = false;
    form.addEventListener("submit", (event) => this.submit(event));
    this.stopButton.addEventListener("click", () => this.actions.stop());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.typed());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.busy && !event.defaultPrevented) this.actions.stop();
    });
    form.elements.model.addEventListener("change", () => (this.notice.textContent = ""));
    this.takeFiles();
    // What was typed and not sent outlives a reload.
    this.field.value = sessionStorage.getItem(DRAFT) ?? "";
    this.typed();
  }

  // Anywhere on the page: a file that is dropped and not taken would replace the page in the browser.
  takeFiles() {
    this.form.addEventListener("paste", (event) => this.attach(event, event.clipboardData));
    document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
    document.addEventListener("drop", (event) => this.attach(event, event.dataTransfer));
  }

  attach(event, data) {
    const files = [...(data?.files ?? [])];
    // Text that is copied from an office program comes with a picture of itself.
    if (files.length === 0 || (event.type === "paste" && data.types.includes("text/plain"))) return;
    event.preventDefault();
    this.loadPictures().then((pictures) => pictures.add(files));
  }

  loadPictures() {
    return (this.loaded ??= import("./pictures.js").then(({ Pictures }) => (this.pictures = new Pictures(this.form))));
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
    this.notice.textContent = "";
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
