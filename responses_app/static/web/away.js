// Page of a 503: loads the page that was asked for as soon as the server gives it.
const FIRST_WAIT_MS = 2000;
const MAX_WAIT_MS = 15_000;

for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
  await new Promise((resolve) => setTimeout(resolve, wait));
  if (document.hidden) continue;
  const response = await fetch(location.href, { method: "HEAD", redirect: "manual" }).catch(() => null);
  if (response && response.status !== 503) break;
}
location.reload();
