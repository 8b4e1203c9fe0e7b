// Times in the filters of the list: shown in the time zone of the browser, sent in UTC. Words (`today`) are sent with the zone. Ages (`2h`) stay.
import { zoneName } from "./local_time.js";

const NAMES = ["since", "until"];
const WRITTEN = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?$/;
const WORD = /^(to|yester)day$/i;
const form = document.querySelector("form.filters");

for (const name of NAMES) {
  const field = form.elements[name];
  const { instant } = field.dataset;
  // The Swedish form is that of ISO 8601.
  if (instant && /^\d{4}-/.test(field.value)) field.value = field.dataset.shown = new Date(instant).toLocaleString("sv");
  field.addEventListener("input", () => showZone(field));
  showZone(field);
}

/** Returns the time in a field as text, in the form of `Date`; undefined for words and ages. */
function written(text) {
  if (WRITTEN.test(text)) return text.length > 10 ? text.replace(" ", "T") : `${text}T00:00`;
}

// The time of a field can have another offset than now.
function showZone(field) {
  const { instant, shown } = field.dataset;
  const time = new Date(field.value === shown ? instant : (written(field.value.trim()) ?? Date.now()));
  field.labels[0].querySelector("[data-filter-zone]").textContent = zoneName(Number.isNaN(time.valueOf()) ? new Date() : time);
}

form.addEventListener("formdata", ({ formData }) => {
  for (const name of NAMES) {
    // The list leaves out empty fields.
    const text = (formData.get(name) ?? "").trim();
    if (WORD.test(text)) formData.set("zone", Intl.DateTimeFormat().resolvedOptions().timeZone);
    if (!written(text)) continue;
    // At the end of summer time the text of an hour stands twice: an unchanged field keeps its own time.
    const { instant, shown } = form.elements[name].dataset;
    const time = new Date(text === shown ? instant : written(text));
    // A day in *To* ends at the next midnight.
    if (name === "until" && text.length === 10) time.setDate(time.getDate() + 1);
    if (!Number.isNaN(time.valueOf())) formData.set(name, time.toISOString().replace(".000", ""));
  }
});
