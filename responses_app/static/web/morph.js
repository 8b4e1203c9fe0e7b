// Change of an element to a newer version of its HTML.
import { enhanced } from "./items.js";
import { Idiomorph } from "./vendor/idiomorph.js";

/** Changes `element` to `fresh` in place, so that nothing jumps. Open details and enhanced code stay. */
export async function morph(element, fresh) {
  const isSame = (old, next) =>
    (old.classList?.contains("enhanced") && old.querySelector("code").textContent === next.querySelector?.("code")?.textContent) ||
    (old.classList?.contains("typeset") && old.title === next.textContent);
  const callbacks = { beforeNodeMorphed: (old, next) => !isSame(old, next), beforeAttributeUpdated: (name) => name !== "open" };
  Idiomorph.morph(element, fresh, { callbacks });
  await enhanced(element);
}
