// Message that is not stored yet: text, attached images and files.
import { plain } from "../output_item.js";
import { el, visible } from "./dom.js";
import { partsOf } from "./turn.js";

export const draft = (item) => el("div", { class: "message" }, ...partsOf(item).map(draftPart));

function draftPart(part) {
  // As large as the stored picture.
  const onload = ({ target }) => Object.assign(target, { width: target.naturalWidth, height: target.naturalHeight });
  if (part.type === "input_image") return el("p", { class: "quiet" }, el("img", { src: part.image_url, alt: "Attached image", class: "picture", onload }));
  if (part.type === "input_file") return el("p", { class: "quiet" }, `File: ${visible(part.filename ?? part.file_id ?? part.file_url ?? "")}`);
  const element = plain();
  element.textContent = visible(part.text ?? "");
  return element;
}
