// Images that go with a message: chosen, pasted or dropped, shown small, sent as data URLs.
import { button, el, visible } from "./dom.js";

const TAKEN = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const LARGEST = 15_000_000;

export class Pictures {
  constructor(form) {
    this.urls = [];
    this.form = form;
    this.shown = form.querySelector(".pictures");
    this.chooser = form.elements.image;
    this.notice = form.querySelector(".notice");
    this.chooser.addEventListener("change", () => this.add([...this.chooser.files]).then(() => (this.chooser.value = "")));
    form.elements.model.addEventListener("change", () => this.fit());
    this.fit();
  }

  get model() {
    return this.form.elements.model.selectedOptions[0];
  }

  get sees() {
    return this.model?.dataset.sees === "1";
  }

  // With a model that takes no images they stay out of sight, and are not sent.
  fit() {
    this.chooser.closest(".attach").hidden = !this.sees;
    this.shown.hidden = !this.sees;
    if (!this.sees && this.urls.length) this.notice.textContent = `${this.model?.value} doesn’t accept images. The attached images won’t be sent.`;
  }

  async add(files) {
    this.notice.textContent = this.sees ? "" : `${this.model?.value ?? "This server"} doesn’t accept images.`;
    if (!this.sees) return;
    for (const file of files) {
      if (!TAKEN.includes(file.type) || file.size > LARGEST) this.notice.textContent = `${visible(file.name)} can’t be attached. Use PNG, JPEG, WebP or GIF images up to 15 MB.`;
      else this.show(await read(file), visible(file.name));
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
