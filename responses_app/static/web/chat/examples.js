// Example prompts of an empty chat. An example switches on the tool that it needs, and all other tools off.

export function send(chat, { dataset: { tool, value }, textContent }) {
  chat.settings.check("tools");
  chat.settings.choose({ [tool]: [value] });
  return chat.sendMessage(textContent);
}
