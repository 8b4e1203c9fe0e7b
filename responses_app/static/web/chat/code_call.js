// Card of code that the server runs: the code, the logs and the pictures.
import { CallCard, folded, imageOf } from "./call_card.js";

// No event marks the end of the code before the container has started. The first start may install packages.
const WRITING_PAUSE_MS = 2000;

export class CodeCall extends CallCard {
  constructor() {
    super("python", "Code run by the server", "Code");
    this.pause();
  }

  pause() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.count("Waiting for the container…"), WRITING_PAUSE_MS);
  }

  apply(event) {
    if (event.type.endsWith("_code.delta")) {
      this.text.append(event.delta);
      this.pause();
    }
    if (event.type.endsWith("_code.done")) this.setText(event.code);
    if (event.type.endsWith(".interpreting")) {
      clearTimeout(this.waiting);
      this.count("Running…");
    }
  }

  complete({ code, outputs, status }) {
    clearTimeout(this.waiting);
    this.setText(code ?? "");
    this.finish(status);
    this.showResult(...(outputs ?? []).map((output) => imageOf(output.url) ?? folded(output.logs ?? JSON.stringify(output))));
  }
}
