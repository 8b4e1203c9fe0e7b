// Continuation behind an item.

/** Replaces the items of the editors by those up to an item of the original or of its context. */
export async function continueFrom(editors, uid) {
  const response = await fetch(`${editors.contextUrl}?until=${encodeURIComponent(uid)}`).catch(() => null);
  if (!response?.ok) return void (editors.note.textContent = "This item can’t be loaded.");
  const { previous, items } = await response.json();
  editors.list.dataset.previous = previous ?? "";
  for (const item of editors.items) item.remove();
  for (const item of items) editors.add(item);
  editors.note.textContent = "The next run continues behind the last item.";
}
