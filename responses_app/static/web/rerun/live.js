// Output of a running response in a column, loaded with the first run.
import { el } from "../chat/dom.js";
import { LOST } from "../chat/follow.js";
import { OutputItem } from "../output_item.js";

/** Items of a running response, with the time to the first token. `keeps` leaves what is shown in place. */
export class LiveOutput {
  constructor(container, responses, keeps) {
    Object.assign(this, { container, responses, start: performance.now(), items: new Map() });
    this.lost = el("p", { class: "warn" }, LOST);
    this.first = el("dd", {}, "–");
    this.refused = el("div");
    this.status = el("span", { class: "status in_progress" }, "In progress");
    const unknown = ["Tokens/s", "Tokens", "Finish", "Validity"].map((name) => el("div", {}, el("dt", {}, name), el("dd", {}, "–")));
    // The lines of a result, which takes this place at the end.
    const head = [
      el("p", { class: "summary" }, this.status),
      el("dl", { class: "figures" }, el("div", {}, el("dt", {}, "TTFT"), this.first), ...unknown),
    ];
    this.body = el("div", { class: "items live" }, this.refused);
    if (keeps) container.append(this.body);
    else container.replaceChildren(...head, this.body);
  }

  /** Shows whether the request waits to be sent again. */
  showWait(waits) {
    this.status.textContent = waits ? "Waiting" : "In progress";
  }

  showRetry(retries) {
    this.showWait(false);
    if (retries) this.container.prepend(this.lost);
    else this.lost.remove();
  }

  apply(event) {
    const { type, output_index, item, delta } = event;
    if (type === "response.created") this.url = `${this.responses}/${event.response.id}`;
    if (type === "response.output_item.added") this.open(output_index, item);
    if (typeof delta === "string" && this.first.textContent === "–") this.first.textContent = `${((performance.now() - this.start) / 1000).toFixed(2)} s`;
    if (type === "response.output_item.done") this.items.get(output_index)?.complete(item);
    else this.items.get(output_index)?.apply(event);
  }

  open(index, item) {
    const output = new OutputItem(item, this.url);
    this.body.append(output.element);
    this.items.set(index, output);
  }
}
