// State of a call of a server tool that is running, with the seconds since its start.
const TICK_MS = 1000;
// No event marks the end of the code before the container has started. The first start may install packages.
const WRITING_PAUSE_MS = 2000;

export class CallClock {
  constructor(element) {
    this.element = element;
  }

  take(type) {
    if (type.endsWith("_code.delta")) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.count("Waiting for the container…"), WRITING_PAUSE_MS);
    }
    const begins = /\.(interpreting|searching)$/.test(type) || /mcp_call_arguments\.done$/.test(type);
    if (begins) this.count("Running…");
  }

  // Shows `state` with the seconds since now.
  count(state) {
    this.stop();
    const started = performance.now();
    const show = (text) => (this.element.querySelector(".state").textContent = text);
    show(state);
    this.timer = setInterval(() => show(`${state} ${Math.round((performance.now() - started) / 1000)} s`), TICK_MS);
  }

  stop() {
    clearTimeout(this.waiting);
    clearInterval(this.timer);
  }
}
