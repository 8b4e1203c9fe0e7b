// Tabs of the inspector, whose parts are loaded with the first use. The tabs are links: a click before this module runs opens the
// part as a page.

/** Starts the tabs of `inspector`, and opens the part of the address, if it has one. */
export function start(inspector) {
  const tabs = [...inspector.querySelectorAll(".parts [role=tab]")];
  let latest = null;
  function open(tab, url) {
    latest = tab;
    import("./inspector_parts.js").then((parts) => latest === tab && parts.open(tab, url));
  }
  inspector.querySelector(".parts").addEventListener("keydown", (event) => {
    if (event.key === " ") {
      event.preventDefault();
      event.target.click();
    }
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const tab = tabs.at((tabs.indexOf(event.target) + step) % tabs.length);
    tab.focus();
    open(tab);
  });
  inspector.addEventListener("click", (event) => {
    const link = event.target.closest("[role=tab], a[href]");
    const tab = tabs.find((one) => one === link || (one.pathname && one.pathname === link?.pathname));
    if (!tab || link.classList.contains("whole-page") || event.ctrlKey || event.metaKey || event.shiftKey || !tab.offsetWidth) return;
    event.preventDefault();
    open(tab, link.href);
  });
  const part = new URL(location.href).searchParams.get("part");
  const asked = part && tabs.find((tab) => tab.pathname?.endsWith(`/${part}`));
  if (asked && (asked.offsetWidth || matchMedia("(max-width: 40rem)").matches)) open(asked);
}
