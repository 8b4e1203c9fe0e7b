// Times in forms: shown and entered in the time zone of the browser, sent in UTC.

const local = (day) => day.toLocaleString("sv").slice(0, 16).replace(" ", "T");

for (const field of document.querySelectorAll("input[type=datetime-local]")) {
  // A field that the browser restored has its own time already.
  if (field.defaultValue && field.value === field.defaultValue) field.value = local(new Date(`${field.defaultValue}Z`));
  const label = field.labels[0].querySelector("[data-local]");
  label.textContent = label.dataset.local;
  field.form.addEventListener("formdata", ({ formData }) => {
    const value = formData.get(field.name);
    if (value) formData.set(field.name, new Date(value).toISOString().slice(0, 16));
  });
}
