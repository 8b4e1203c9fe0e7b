// Keeps the end in sight while something is written there, unless the reader has gone elsewhere.
const CLOSE = 120;
let pinned = true;
let asked = false;

addEventListener("scroll", () => (pinned = innerHeight + scrollY >= document.documentElement.scrollHeight - CLOSE), { passive: true });

export function stick(always = false) {
  pinned ||= always;
  if (asked || !pinned) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  });
}
