// Card of code that the server runs: the code, the logs and the pictures.
import { CallCard, folded, imageOf } from "./call_card.js";

export class CodeCall extends CallCard {
  constructor() {
    super("python", "Code run by the server", "Code");
  }

  apply(event) {
    if (event.type.endsWith("_code.delta")) this.text.append(event.delta);
    if (event.type.endsWith("_code.done")) this.setText(event.code);
    if (event.type.endsWith(".interpreting")) this.start();
  }

  complete({ code, outputs, status }) {
    this.setText(code ?? "");
    this.finish(status);
    this.showResult(...(outputs ?? []).map((output) => imageOf(output.url) ?? folded(output.logs ?? JSON.stringify(output))));
  }
}
