// Keys pressed before the modules of the page run: keyboard.js takes these.
window.earlyKeys = [];
addEventListener("keydown", (event) => window.earlyKeys?.push(event));
