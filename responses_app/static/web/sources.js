// JSON, SSE lines and code of a page and of the parts that it fetches: colours, folds, and buttons to copy.
import { showCopyButtons } from "./copy.js";

async function enhanceSources() {
  showCopyButtons();
  if (document.querySelector("[data-json], .wire, [data-code]")) (await import("./markdown/source_view.js")).enhanceSource();
}
document.addEventListener("fresh", enhanceSources);
enhanceSources();
