// Place of a response in the list that it was opened from.
import { icon } from "./icon.js";

/** Adds links to the neighbours to the line of the back link. `save` remembers the row that is followed. */
export function showPlace(line, { all, row, ...state }, save) {
  const here = location.pathname.match(/^\/responses\/[^/]+/)?.[0];
  const at = all.indexOf(here);
  if (at < 0) return;
  const step = (place, name, label) => {
    if (!all[place]) return "";
    const link = Object.assign(document.createElement("a"), { href: location.pathname.replace(here, all[place]).replace(/\/events\/\d+$/, "/events"), title: label });
    link.setAttribute("aria-label", label);
    link.append(icon(name));
    link.addEventListener("click", () => save({ ...state, all, row: all[place] }));
    return link;
  };
  const box = Object.assign(document.createElement("span"), { className: "place" });
  box.append(step(at - 1, "previous", "Previous response"), `${at + 1} of ${all.length}`, step(at + 1, "next", "Next response"));
  line.append(box);
}
