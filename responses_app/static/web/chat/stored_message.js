// Files and pictures of a message that has just been stored: the server's fragments, which link to them.
import { parseFragment } from "../items.js";
import { morph } from "../morph.js";

export async function show(turn, chat) {
  const response = await fetch(`${chat}/${encodeURIComponent(turn.id)}/messages`, { redirect: "error" }).catch(() => null);
  const { messages } = response?.ok ? await response.json() : { messages: [] };
  const drafts = turn.element.querySelectorAll("article.person .message");
  messages.forEach((html, place) => drafts[place] && morph(drafts[place], parseFragment(html)));
}
