// Output problems of a response: parts of the output that the server did not understand, one line for each.
import { el, visible } from "./dom.js";

export function showProblems(element, response) {
  const found = response.output_problems;
  const lines = found.map((problem) => el("li", {}, visible(problem.message), ...(problem.text ? [" ", el("code", { dir: "auto" }, visible(problem.text))] : [])));
  const count = found.length === 1 ? "1 output problem" : `${found.length} output problems`;
  element.append(el("details", { class: "problems quiet" }, el("summary", {}, count), el("ul", {}, ...lines)));
}
