// The inspector on a phone: a sheet from below, opened by a button.
import { icon } from "./icon.js";
import { addStyle } from "./style.js";

const inspector = document.querySelector(".inspector");
const place = document.createComment("inspector");
const opener = Object.assign(document.createElement("button"), { type: "button", className: "open-inspector", textContent: "Properties" });
const dialog = Object.assign(document.createElement("dialog"), { className: "bottom" });
const body = document.createElement("div");
const close = Object.assign(document.createElement("button"), { type: "button", className: "plain" });
opener.setAttribute("aria-haspopup", "dialog");
dialog.setAttribute("aria-label", "Properties");
close.setAttribute("aria-label", "Close");
close.append(icon("close"));
body.append(close);
dialog.append(body);
addStyle(new URL("inspector_sheet.css", import.meta.url).href).then(() => document.querySelector("#response").append(opener, dialog));

opener.addEventListener("click", () => {
  inspector.replaceWith(place);
  inspector.querySelector(".properties").open = true;
  body.append(inspector);
  dialog.showModal();
});
close.addEventListener("click", () => dialog.close());
// A tap outside has the dialog itself as its target.
dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
// The browser closes the dialog by Escape; the keys of the page would leave the page.
dialog.addEventListener("keydown", (event) => event.key === "Escape" && event.stopPropagation());
dialog.addEventListener("close", () => place.replaceWith(inspector));
