// Message form: text, attachments, and the keys to send and stop.
const MAX_HEIGHT_PX = 240;
const WAIT = "Wait for the answer, or stop it.";

export class Composer {
  // `actions`: load() what sends, send(text, attached parts), stop().
  constructor(form, actions) {
    this.form = form;
    this.field = form.elements.text;
    this.stopButton = form.querySelector(".stop");
    this.sendButton = form.querySelector(".send");
    this.notice = form.querySelector(".notice");
    this.attachments = { isEmpty: true, take: () => [] };
    this.actions = actions;
    this.busy = false;
    this.pending = 0;
    form.addEventListener("submit", (event) => this.submit(event));
    this.stopButton.addEventListener("click", () => this.actions.stop());
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.field.addEventListener("input", () => this.onInput());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.busy && !event.defaultPrevented && !document.querySelector("dialog[open], :popover-open")) this.actions.stop();
    });
    form.elements.model.addEventListener("change", () => (this.notice.textContent = ""));
    this.acceptFiles();
    const { attachment } = form.elements;
    attachment.addEventListener("change", () => this.add([...attachment.files]).then(() => (attachment.value = "")));
    this.field.value = sessionStorage.draft ?? "";
    this.onInput();
  }

  // On the whole page: a browser opens a dropped file that no script handles.
  acceptFiles() {
    this.form.addEventListener("paste", (event) => this.attach(event, event.clipboardData));
    const mark = (on) => this.form.classList.toggle("drop", on);
    document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && (event.preventDefault(), mark(true)));
    document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || mark(false));
    document.addEventListener("drop", (event) => (mark(false), this.attach(event, event.dataTransfer)));
  }

  attach(event, data) {
    const files = [...(data?.files ?? [])];
    // Office programs copy text with an image of it: paste the text only.
    if (files.length === 0 || (event.type === "paste" && data.types.includes("text/plain"))) return;
    event.preventDefault();
    this.add(files);
  }

  async add(files) {
    this.loaded ??= import("./attachments.js").then(({ Attachments }) => (this.attachments = new Attachments(this.form)));
    this.pending += 1;
    try {
      await (await this.loaded).add(files);
    } finally {
      this.pending -= 1;
    }
  }

  onKey(event) {
    // With an input method, for example Japanese, Enter selects a word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.form.requestSubmit();
  }

  onInput() {
    this.keepDraft();
    this.fit();
  }

  // For a reload. A sent text is kept until its response exists.
  keepDraft() {
    sessionStorage.draft = this.field.value;
  }

  fit() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, MAX_HEIGHT_PX)}px`;
  }

  async submit(event) {
    event.preventDefault();
    // Without a connection the text stays.
    await this.actions.load();
    const text = this.field.value.trim();
    if (this.busy) this.notice.textContent = WAIT;
    if (this.busy || this.sendButton.disabled || !(text || this.pending || !this.attachments.isEmpty)) return;
    if (this.pending) return void (this.notice.textContent = "A file is still being uploaded.");
    const attached = this.attachments.take();
    for (const menu of this.form.querySelectorAll(".menu[open]")) menu.open = false;
    this.field.value = "";
    this.notice.textContent = "";
    this.fit();
    this.actions.send(text, attached);
  }

  setBusy(busy) {
    this.busy = busy;
    if (this.notice.textContent === WAIT) this.notice.textContent = "";
    this.stopButton.hidden = !busy;
    this.sendButton.hidden = busy;
    // The pressed button is hidden now and has lost the focus.
    if (document.activeElement === document.body) this.focus();
  }

  focus() {
    // On a phone the focus would open the keyboard over the answer.
    if (matchMedia("(pointer: fine)").matches) this.field.focus({ preventScroll: true });
  }
}
