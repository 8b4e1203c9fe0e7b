// Tabs of the inspector, whose parts are loaded with the first use. A link to a part, as that of a selected item, opens there.
// The tabs are links: a click before this module runs opens the part as a page.
const page = document.querySelector("#response");
const tabs = [...page.querySelectorAll(".parts [role=tab]")];
let latest = null;
function open(tab, url) {
  latest = tab;
  import("./inspector_parts.js").then((parts) => latest === tab && parts.open(tab, url));
}
page.querySelector(".parts").addEventListener("keydown", (event) => {
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
page.querySelector(".inspector").addEventListener("click", (event) => {
  const link = event.target.closest("[role=tab], a[href]");
  const tab = tabs.find((one) => one === link || (one.pathname && one.pathname === link?.pathname));
  if (!tab || link.classList.contains("whole-page") || event.ctrlKey || event.metaKey || event.shiftKey || !tab.offsetWidth) return;
  event.preventDefault();
  open(tab, link.href);
});
const part = new URL(location.href).searchParams.get("part");
const asked = part && tabs.find((tab) => tab.pathname?.endsWith(`/${part}`));
if (asked && (asked.offsetWidth || matchMedia("(max-width: 40rem)").matches)) open(asked);
