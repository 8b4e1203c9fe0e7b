// Scrolls to the end of the page while text arrives, unless the user has scrolled up.
const END_DISTANCE_PX = 120;
let pinned = true;
let scheduled = false;

addEventListener("scroll", () => (pinned = innerHeight + scrollY >= document.documentElement.scrollHeight - END_DISTANCE_PX), { passive: true });

export function autoscroll(force = false) {
  pinned ||= force;
  if (scheduled || !pinned) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  });
}
