// Final HTML of an item, with retries.
import { button, el } from "./chat/dom.js";
import { fetchFragment } from "./items.js";
import { morph } from "./morph.js";

async function isReplaced(element, url) {
  for (let wait = 500; wait < 8000; wait *= 2) {
    const fresh = await fetchFragment(url).catch(() => null);
    if (fresh) return morph(element, fresh).then(() => true);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** Takes the fragment at `url` in place of the element. If that fails, `output.replaced` resolves when it is done. */
export async function replace(output, url) {
  const { element } = output;
  if (await isReplaced(element, url)) return;
  // An element that waits for its place would leave the notice behind.
  await output.placed;
  for (const state of element.querySelectorAll(".state, .label")) state.textContent = state.matches(".label") ? "Thought" : "";
  output.replaced = new Promise((resolve) => {
    const again = button("Try again", async () => {
      again.hidden = true;
      const isDone = await isReplaced(element, url);
      again.hidden = isDone;
      element.tabIndex = -1;
      if (document.activeElement === document.body) (isDone ? element : again).focus({ preventScroll: true });
      if (!isDone) return;
      notice.remove();
      resolve();
    });
    const notice = el("p", { class: "warn", role: "alert" }, "Couldn’t load this part of the answer. ", again);
    element.after(notice);
  });
}
