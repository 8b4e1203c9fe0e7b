// Files of an edited message: a box for each tells whether the file is sent again.
import { el } from "./dom.js";
import { partsOf } from "./turn.js";

export function choices(input) {
  const files = partsOf(input.findLast((item) => item.role === "user")).filter((part) => part.type !== "input_text");
  const boxes = files.map(() => el("input", { type: "checkbox", checked: true }));
  const labels = files.map((part, place) => el("label", {}, boxes[place], ` ${part.filename ?? part.file_id ?? `Image ${place + 1}`}`));
  return { labels, keeps: (part) => boxes[files.indexOf(part)]?.checked ?? false };
}
