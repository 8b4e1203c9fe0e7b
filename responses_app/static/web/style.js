// Styles of modules that are loaded on first use.

/** Resolves when the stylesheet is loaded, also after a failure: the parts work without their styles. */
export const addStyle = (href) => new Promise((resolve) => {
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: resolve, onerror: resolve }));
});
