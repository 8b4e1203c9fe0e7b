// Options of a conversation in a dialog: the forms of the options page, sent without leaving the chat.
import { addStyle } from "../style.js";

const styled = addStyle(new URL("thread_options.css", import.meta.url).href);

// The control that follows a pressed button, which new forms replace.
const NEXT = { share: "#shared", revoke: "[value=share]", pin: "[value=unpin]", unpin: "[value=pin]" };

export async function show(threads, link) {
  await styled;
  const dialog = document.createElement("dialog");
  dialog.className = "thread-options";
  dialog.setAttribute("aria-label", link.getAttribute("aria-label"));
  dialog.addEventListener("close", () => (dialog.remove(), threads.element.querySelector(`[href="${link.getAttribute("href")}"]`)?.focus()));
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("submit", (event) => change(threads, dialog, event));
  if (!(await fill(dialog, link.href))) return void (location.href = link.href);
  document.body.append(dialog);
  dialog.showModal();
}

async function change(threads, dialog, event) {
  const form = event.target;
  // A deletion leaves the conversation.
  if (form.getAttribute("action")) return;
  event.preventDefault();
  const body = new FormData(form, event.submitter);
  if (await fill(dialog, dialog.dataset.url, { method: "POST", body })) {
    dialog.querySelector(NEXT[event.submitter?.value] ?? "form button").focus();
    return threads.refresh();
  }
  const problem = Object.assign(document.createElement("p"), { className: "bad", textContent: "Nothing was changed: your session has ended, or the server can’t be reached." });
  problem.setAttribute("role", "alert");
  dialog.querySelector("[role=alert]")?.remove();
  form.after(problem);
}

// Fetches the options page and takes its forms. Returns false after a failure.
async function fill(dialog, url, request) {
  const response = await fetch(url, request).catch(() => null);
  if (!response?.ok || !response.url.endsWith("/options")) return false;
  // The server's template escapes every title, and DOMParser runs no scripts.
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  dialog.dataset.url = response.url;
  dialog.replaceChildren(...[...page.querySelector("main").childNodes].map((node) => document.adoptNode(node)));
  dialog.querySelector("h1 + p").replaceWith(closeButton(dialog));
  for (const button of dialog.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => (await navigator.clipboard.writeText(dialog.querySelector(button.dataset.copy).textContent), (button.textContent = "Copied")));
  }
  return true;
}

function closeButton(dialog) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain close";
  button.textContent = "Close";
  button.addEventListener("click", () => dialog.close());
  return button;
}
