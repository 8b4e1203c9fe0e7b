// Output problems of a response: parts of the output that the server did not understand, one line for each.
import { el, visible } from "./dom.js";

export function showProblems(element, response) {
  const problems = response.output_problems;
  const lines = problems.map((problem) => el("li", {}, visible(problem.message), ...(problem.text ? [" ", el("code", { dir: "auto" }, visible(problem.text))] : [])));
  const count = problems.length === 1 ? "1 output problem" : `${problems.length} output problems`;
  element.append(el("details", { class: "problems quiet" }, el("summary", {}, count), el("ul", {}, ...lines)));
}
