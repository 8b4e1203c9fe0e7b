// Control, bidirectional and invisible characters, by name: the same ones as in invisible.py.
const HIDDEN = String.raw`\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}`;
const JOINERS = String.raw`\u200c\u200d`;
const SELECTORS = String.raw`\ufe00-\ufe0f`;
const LETTER = String.raw`[^\u0000-\u007f${HIDDEN}${JOINERS}${SELECTORS}]`;
const NAMED = new RegExp(
  String.raw`[${HIDDEN}]|(?<!${LETTER})(?<![\ufe0e\ufe0f])[${JOINERS}]|(?<!${LETTER})(?<![0-9#*])[${SELECTORS}]`,
  "gu",
);
const LONGEST_EMOJI_PART = 3;

/** The text with every such character as `⟨U+202E⟩`; tabs and line feeds stay. */
export const visible = (text) =>
  text.replace(NAMED, (found) => `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** The same of a text that stands behind `before`, whose last letter may be joined to it. */
export function visibleBehind(before, text) {
  const end = visible(before.slice(-LONGEST_EMOJI_PART));
  return visible(end + text).slice(end.length);
}
