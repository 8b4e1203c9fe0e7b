// Scrolls to the end while text arrives, unless the user has scrolled up.
const END_DISTANCE_PX = 120;
let pinned = true;
let last = 0;
let scheduled = false;

addEventListener("scroll", () => {
  // The page may have grown since it was scrolled.
  pinned = innerHeight + scrollY >= document.documentElement.scrollHeight - END_DISTANCE_PX || (pinned && scrollY >= last);
  last = scrollY;
}, { passive: true });

export function autoscroll(force) {
  pinned ||= force;
  if (scheduled || !pinned) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    if (pinned) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    last = scrollY;
  });
}
