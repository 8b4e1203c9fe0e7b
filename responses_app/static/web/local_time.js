// Times in the time zone of the browser. Without this script they are in the zone that their `title` names.

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const two = (number) => String(number).padStart(2, "0");
/** Returns the short name of the time zone of the browser, as GMT+1. */
export function zoneName(day) {
  return new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(day).find(({ type }) => type === "timeZoneName").value;
}

// The letters of Django's date formats that the pages use.
const PARTS = {
  Y: (day) => day.getFullYear(),
  m: (day) => two(day.getMonth() + 1),
  d: (day) => two(day.getDate()),
  M: (day) => MONTHS[day.getMonth()],
  j: (day) => day.getDate(),
  H: (day) => two(day.getHours()),
  i: (day) => two(day.getMinutes()),
  s: (day) => two(day.getSeconds()),
  T: zoneName,
};

// Where the zone changes within an axis of hours, each of its times has the zone.
const zonesOf = (axis) => new Set([...axis.querySelectorAll("time")].map((time) => zoneName(new Date(time.dateTime))));

function showLocal() {
  for (const axis of document.querySelectorAll(".axis")) axis.toggleAttribute("data-zones", zonesOf(axis).size > 1);
  for (const time of document.querySelectorAll("time[data-format], [data-format] time")) {
    const day = new Date(time.dateTime);
    // Rows have no title: their `datetime` is in the zone of the page.
    time.title ||= `${time.dateTime.slice(0, 19).replace("T", " ")} ${document.querySelector("[data-zone]").dataset.zone}`;
    const { format } = time.closest("[data-format]").dataset;
    const zoned = format === "H:i:s" && time.closest("[data-zones]") ? `${format} T` : format;
    const text = zoned.replace(/[A-Za-z]/g, (letter) => PARTS[letter](day));
    if (time.textContent !== text) time.textContent = text;
  }
  for (const zone of document.querySelectorAll("[data-zone]")) {
    const text = `your time zone (${zone.dataset.zone} on hover).`;
    if (zone.textContent !== text) zone.textContent = text;
  }
}

showLocal();
new MutationObserver(showLocal).observe(document.body, { childList: true, characterData: true, subtree: true });
