// Links for citations of files: downloads of files that code has written, and of uploaded files that were searched.
const citesFile = ({ type }) => type === "container_file_citation" || type === "file_citation";

// Returns the Markdown `text` with a link for each citation of a file. Positions count code points.
export function withLinks(text, annotations) {
  const chars = [...text];
  const cited = annotations.filter(citesFile).map((one) => ({ ...one, start: one.start_index ?? one.index, end: one.end_index ?? one.index }));
  // From the end, so that the positions stay true.
  for (const one of cited.reverse().sort((a, b) => b.start - a.start)) chars.splice(one.start, one.end - one.start, replacement(one, chars));
  return chars.join("");
}

function replacement(one, chars) {
  const label = one.filename.replace(/[[\]\n]/g, " ").replace(/[\\`*_~]/g, "\\$&");
  if (one.type === "file_citation") return ` ([${label}](/files/${encodeURIComponent(one.file_id)}/content))`;
  const url = `/containers/${encodeURIComponent(one.container_id)}/files/${encodeURIComponent(one.file_id)}/content`;
  // Within a Markdown link the address takes the place of the path; a path alone becomes a link.
  return chars.slice(Math.max(0, one.start - 2), one.start).join("") === "](" ? url : `[${label}](${url})`;
}
