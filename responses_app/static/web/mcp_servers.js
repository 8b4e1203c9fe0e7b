// Tests each MCP server when the page opens, and shows the states without a click. The tools are folded.
const NOT_TESTED = "p.quiet";

async function showState(section) {
  const [form, state] = [section.querySelector("form"), section.querySelector(".state")];
  const note = state.querySelector(NOT_TESTED);
  if (!note) return;
  note.textContent = "Testing…";
  const response = await fetch(form.action, { method: "POST", body: new FormData(form) }).catch(() => null);
  const page = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
  const tested = page?.getElementById(section.getAttribute("aria-labelledby"))?.parentElement.querySelector(".state");
  if (!tested) return (note.textContent = "Not tested.");
  tested.querySelector("details")?.removeAttribute("open");
  state.replaceChildren(...tested.childNodes);
}

for (const section of document.querySelectorAll("section:has(.state)")) showState(section);
