// Names characters that nobody would see, as invisible.py does: `⟨U+202E⟩`.
const HIDDEN = String.raw`\p{Cc}\p{DI}\u2028\u2029\ufff9-\ufffb`;
const LETTER = String.raw`[^\0-\x7f${HIDDEN}]`;
// Tabs, line feeds, and what joins letters or emoji stay.
const STAYS = String.raw`[\t\n]|(?<=${LETTER}|[\ufe0e\ufe0f])[\u200c\u200d]|(?<=${LETTER}|[\d#*])[\ufe00-\ufe0f]`;
const NAMED = RegExp(`(?!${STAYS})[${HIDDEN}]`, "gu");

export const visible = (text) =>
  text.replace(NAMED, (one) => `⟨U+${one.codePointAt().toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** The same of a text behind another, whose last letter may be joined to it. */
export function visibleBehind(before, text) {
  const end = visible(before.slice(-3));
  return visible(end + text).slice(end.length);
}
