// Attachments of a message, chosen, pasted or dropped: images as data URLs, other files uploaded through the Files API.
import { icon } from "../icon.js";
import { addStyle } from "../style.js";
import { Api } from "./protocol.js";
import { button, el, visible } from "./dom.js";

const styled = addStyle(new URL("attachments.css", import.meta.url).href);
const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const MAX_IMAGE_BYTES = 15_000_000;
// As in images/decode.py.
const MAX_IMAGE_PIXELS = 50_000_000;

export class Attachments {
  constructor(form) {
    // Parts of the message, each with its entry in the list.
    this.entries = [];
    this.form = form;
    this.list = form.querySelector(".attached");
    this.notice = form.querySelector(".notice");
    const { files, secret } = form.closest("#chat").dataset;
    this.api = new Api(files, secret);
    form.elements.model.addEventListener("change", () => this.update());
  }

  get model() {
    return this.form.elements.model.selectedOptions[0];
  }

  get supportsImages() {
    return this.model?.dataset.sees === "1";
  }

  get isEmpty() {
    return this.shown.length === 0;
  }

  // The entries that are sent: images of a model without image input stay hidden.
  get shown() {
    return this.entries.filter(({ part }) => this.supportsImages || part.type !== "input_image");
  }

  update() {
    for (const { part, element } of this.entries) element.hidden = part.type === "input_image" && !this.supportsImages;
    if (this.shown.length < this.entries.length) this.notice.textContent = `${this.model?.value} doesn’t accept images. The attached images won’t be sent.`;
  }

  async add(files) {
    this.notice.textContent = "";
    await styled;
    for (const file of files) {
      if (file.type.startsWith("image/")) await this.addImage(file);
      else await this.upload(file);
    }
  }

  async addImage(file) {
    const refused = `${visible(file.name)} can’t be attached.`;
    if (!this.supportsImages) return this.refuse(`${this.model?.value ?? "This server"} doesn’t accept images.`);
    if (!IMAGE_TYPES.includes(file.type) || file.size > MAX_IMAGE_BYTES) return this.refuse(`${refused} Use PNG, JPEG, WebP or GIF images up to 15 MB.`);
    const url = await read(file);
    const image = el("img", { src: url, alt: visible(file.name) });
    await new Promise((resolve) => (image.onload = image.onerror = resolve));
    if (!image.naturalWidth) return this.refuse(`${refused} It isn’t an image that can be read.`);
    if (image.naturalWidth * image.naturalHeight > MAX_IMAGE_PIXELS) return this.refuse(`${refused} Use images up to 50 megapixels.`);
    this.show({ type: "input_image", image_url: url, detail: "auto" }, file.name, image);
  }

  // Each of several refused files is named.
  refuse(text) {
    const { notice } = this;
    if (!notice.textContent.includes(text)) notice.textContent = `${notice.textContent} ${text}`.trim();
  }

  async upload(file) {
    const body = new FormData();
    body.append("purpose", "user_data");
    body.append("file", file);
    const waiting = el("li", { class: "quiet" }, `Uploading ${visible(file.name)}…`);
    this.list.append(waiting);
    try {
      const { id } = await (await this.api.request("", { method: "POST", body })).json();
      this.show({ type: "input_file", file_id: id, filename: file.name }, file.name, el("span", { dir: "auto", title: file.name }, file.name));
    } catch (error) {
      this.refuse(`${visible(file.name)} can’t be attached. ${reason(error)}`);
    } finally {
      waiting.remove();
    }
  }

  show(part, name, content) {
    const remove = button(icon("close"), () => {
      this.entries = this.entries.filter((entry) => entry.element !== element);
      element.remove();
      (this.list.querySelector("button") ?? document.querySelector("input[name=attachment]")).focus();
    }, { "aria-label": `Remove ${visible(name)}` });
    const element = el("li", { class: part.type }, content, remove);
    this.entries.push({ part, element });
    this.list.append(element);
  }

  // The parts of the message. Images that the model does not take are kept for another model.
  take() {
    const taken = this.shown;
    this.entries = this.entries.filter((entry) => !taken.includes(entry));
    for (const { element } of taken) element.remove();
    return taken.map(({ part }) => part);
  }
}

// The sentence of an error, without the parameter of the API.
function reason({ name, message }) {
  const text = name === "TypeError" ? "Can’t reach the server, or read the file." : message.replace(/^Invalid 'file': /, "");
  return visible(text.charAt(0).toUpperCase() + text.slice(1));
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
