// Pictures that go with a message: chosen, pasted or dropped, shown small, sent as data URLs.
import { button, el } from "./dom.js";

const TAKEN = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const LARGEST = 15_000_000;

export class Pictures {
  constructor(form) {
    this.urls = [];
    this.form = form;
    this.shown = form.querySelector(".pictures");
    this.chooser = form.elements.image;
    this.said = form.querySelector(".pictures-said");
    this.chooser.addEventListener("change", () => this.add(this.chooser.files).then(() => (this.chooser.value = "")));
    form.addEventListener("paste", (event) => this.offer(event, event.clipboardData));
    form.addEventListener("dragover", (event) => event.preventDefault());
    form.addEventListener("drop", (event) => this.offer(event, event.dataTransfer));
    form.elements.model.addEventListener("change", () => this.fit());
    this.fit();
  }

  get sees() {
    return this.form.elements.model.selectedOptions[0]?.dataset.sees === "1";
  }

  // Of another model the pictures stay out of sight, and are not sent.
  fit() {
    this.chooser.closest(".attach").hidden = !this.sees;
    this.shown.hidden = !this.sees;
  }

  offer(event, data) {
    if (!data?.files.length || !this.sees) return;
    event.preventDefault();
    this.add(data.files);
  }

  async add(files) {
    this.said.textContent = "";
    for (const file of files) {
      if (!TAKEN.includes(file.type) || file.size > LARGEST) this.said.textContent = `${file.name}: only PNG, JPEG, WebP or GIF up to 15 MB can be sent.`;
      else this.show(await read(file), file.name);
    }
  }

  show(url, name) {
    this.urls.push(url);
    const remove = button("×", () => {
      this.urls.splice(this.urls.indexOf(url), 1);
      made.remove();
    }, { "aria-label": `Remove ${name}` });
    const made = el("li", {}, el("img", { src: url, alt: name }), remove);
    this.shown.append(made);
  }

  take() {
    if (!this.sees) return [];
    const urls = this.urls;
    this.urls = [];
    this.shown.replaceChildren();
    return urls;
  }
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
