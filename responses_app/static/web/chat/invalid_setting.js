// Message of the first invalid field of the settings, because the browser cannot show its own message in a closed panel.

export function show(settings) {
  const field = settings.form.querySelector("input:invalid");
  if (!field) return;
  settings.details.open = true;
  settings.form.querySelector(".problem").textContent = `${field.labels[0].firstChild.data.trim()}: ${field.validationMessage}`;
  field.focus();
}
