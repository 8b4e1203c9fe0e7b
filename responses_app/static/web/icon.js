// Icons of the sprite icons.svg, as the template tag `icon` writes them.
const SVG = "http://www.w3.org/2000/svg";
const SPRITE = new URL("./icons.svg", import.meta.url).href;

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${SPRITE}#${name}`);
  svg.append(use);
  return svg;
}
