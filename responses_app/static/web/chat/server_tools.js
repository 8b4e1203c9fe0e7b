// Server tools: declarations for a request, and the parts of results that the cards show.
const INCLUDES = {
  code_interpreter: ["code_interpreter_call.outputs"],
  web_search: ["web_search_call.action.sources", "web_search_call.results"],
  file_search: ["file_search_call.results"],
};

// The tools and includes of a request, for the names of the checked tools and the id of a vector store (empty without file search).
export function declared(names, store) {
  const tools = names.map((type) => (type === "code_interpreter" ? { type, container: { type: "auto" } } : { type }));
  if (store) tools.push({ type: "file_search", vector_store_ids: [store] });
  return { tools, include: tools.flatMap((tool) => INCLUDES[tool.type]) };
}

const PLAIN = {
  code_interpreter: ({ container }) => container?.type === "auto" && !container.file_ids?.length && !container.memory_limit,
  web_search: ({ filters, search_context_size, user_location }) =>
    !filters && (search_context_size ?? "medium") === "medium" && !user_location?.city && !user_location?.region && (user_location?.country ?? "US") === "US",
  file_search: ({ filters, max_num_results, ranking_options }) => !filters && (max_num_results ?? 20) === 20 && !ranking_options?.score_threshold,
};

// Returns true for a tool that the form declares in the same way. `form` has the names and the ids that the form offers.
export function isDeclaredByForm(tool, form) {
  if (!Object.hasOwn(PLAIN, tool.type) || !PLAIN[tool.type](tool)) return false;
  if (tool.type !== "file_search") return form.names.includes(tool.type);
  return tool.vector_store_ids.length === 1 && form.stores.includes(tool.vector_store_ids[0]);
}

export const includesOf = (tools) => tools.flatMap((tool) => INCLUDES[tool.type]);
