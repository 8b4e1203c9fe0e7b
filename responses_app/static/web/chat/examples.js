// Example prompts of an empty chat. An example switches on the tool that it needs, and other tools of the server off.

export function send(chat, { dataset: { tool, value }, textContent }) {
  chat.settings.choose({ [tool]: [value] });
  return chat.sendMessage(textContent);
}
