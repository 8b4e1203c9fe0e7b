// Names invisible characters as in invisible.py: `⟨U+202E⟩`.
const HIDDEN = String.raw`\p{Cc}\p{DI}\u2028\u2029\ufff9-\ufffb`;
const LETTER = String.raw`[^\0-\x7f${HIDDEN}]`;
// Exceptions: tabs, line feeds, joiners and variation selectors after letters or emoji.
const EXCEPTIONS = String.raw`[\t\n]|(?<=${LETTER}|[\ufe0e\ufe0f])[\u200c\u200d]|(?<=${LETTER}|[\d#*])[\ufe00-\ufe0f]`;
const NAMED = RegExp(`(?!${EXCEPTIONS})[${HIDDEN}]`, "gu");

export const visible = (text) =>
  text.replace(NAMED, (char) => `⟨U+${char.codePointAt().toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** Names the invisible characters of `text`, which follows `before`: a joiner may follow the last letter of `before`. */
export function visibleAfter(before, text) {
  const end = visible(before.slice(-3));
  return visible(end + text).slice(end.length);
}
