// Attached images of a message: chosen, pasted or dropped, sent as data URLs.
import { button, el, visible } from "./dom.js";

const MEDIA_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const MAX_BYTES = 15_000_000;

export class Images {
  constructor(form) {
    this.urls = [];
    this.form = form;
    this.thumbnails = form.querySelector(".pictures");
    this.fileInput = form.elements.image;
    this.notice = form.querySelector(".notice");
    this.fileInput.addEventListener("change", () => this.add([...this.fileInput.files]).then(() => (this.fileInput.value = "")));
    form.elements.model.addEventListener("change", () => this.update());
    this.update();
  }

  get model() {
    return this.form.elements.model.selectedOptions[0];
  }

  get supportsImages() {
    return this.model?.dataset.sees === "1";
  }

  // Hides the images for a model without image input. Hidden images are not sent.
  update() {
    this.fileInput.closest(".attach").hidden = !this.supportsImages;
    this.thumbnails.hidden = !this.supportsImages;
    if (!this.supportsImages && this.urls.length) this.notice.textContent = `${this.model?.value} doesn’t accept images. The attached images won’t be sent.`;
  }

  async add(files) {
    this.notice.textContent = this.supportsImages ? "" : `${this.model?.value ?? "This server"} doesn’t accept images.`;
    if (!this.supportsImages) return;
    for (const file of files) {
      if (!MEDIA_TYPES.includes(file.type) || file.size > MAX_BYTES) this.notice.textContent = `${visible(file.name)} can’t be attached. Use PNG, JPEG, WebP or GIF images up to 15 MB.`;
      else this.show(await read(file), visible(file.name));
    }
  }

  show(url, name) {
    this.urls.push(url);
    const remove = button("×", () => {
      this.urls.splice(this.urls.indexOf(url), 1);
      thumbnail.remove();
    }, { "aria-label": `Remove ${name}` });
    const thumbnail = el("li", {}, el("img", { src: url, alt: name }), remove);
    this.thumbnails.append(thumbnail);
  }

  take() {
    if (!this.supportsImages) return [];
    const urls = this.urls;
    this.urls = [];
    this.thumbnails.replaceChildren();
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
