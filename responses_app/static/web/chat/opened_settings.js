// Settings of an opened conversation.

/** Fills the form. Returns notes about parameters without a control. */
export async function load(settings, model, parameters) {
  const field = settings.form.elements.model;
  const served = [...field.options].some((option) => option.value === model);
  if (served) {
    field.value = model;
    field.dispatchEvent(new Event("change"));
  }
  const notes = served || !model ? [] : [`The model ${model} isn’t available. New messages go to ${field.value || "no model"}.`];
  if (Object.keys(parameters).length === 0) {
    fill(settings, {});
    return notes;
  }
  const { carryOver } = await import("./carried_parameters.js");
  return [...notes, ...(await carryOver(settings, parameters))];
}

/** Sets the controls. `carried` parameters are sent unchanged with every message. */
export function fill(settings, { instructions, temperature, max_output_tokens, effort, tools = [], ...ofServer }, carried = {}) {
  const { form } = settings;
  for (const [name, value] of Object.entries({ instructions, temperature, max_output_tokens, effort })) form.elements[name].value = value ?? "";
  settings.check("tools", tools);
  settings.choose(ofServer);
  settings.carried = carried;
  form.querySelector(".inherited").hidden = true;
}
