// Answers that a person has written for the calls of a response, loaded with the first form that is sent.

/** Returns the input items of `form`: outputs of calls and decisions on approval requests. */
export function answersOf(form) {
  const values = new FormData(form);
  return [...form.querySelectorAll("[data-call]")].map(({ dataset: { call, type } }) => {
    const value = values.get(call);
    return type === "mcp_approval_response" ? { type, approval_request_id: call, approve: value === "approve" } : { type, call_id: call, output: outputOf(type, value) };
  });
}

// Functions and custom tools give texts, other tools JSON.
function outputOf(type, text) {
  if (["function_call_output", "custom_tool_call_output"].includes(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
