// The public API as this page uses it: the same addresses and the same kind of key as any other client.

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server returned an error (HTTP ${status}).`);
    this.status = status;
    this.code = error?.code ?? null;
  }
}

export class Api {
  // `secretUrl` gives the signed-in person's browser a secret for one project; it is asked for when needed, and again when it is old.
  constructor(base, secretUrl) {
    this.base = base;
    this.secretUrl = secretUrl;
    this.secret = null;
  }

  async create(order, signal) {
    return (await this.ask("", { method: "POST", body: JSON.stringify(order), signal })).body;
  }

  async replay(id, after, signal) {
    const query = new URLSearchParams({ stream: "true", include_obfuscation: "false" });
    if (after >= 0) query.set("starting_after", after);
    return (await this.ask(`/${encodeURIComponent(id)}?${query}`, { signal })).body;
  }

  async cancel(id) {
    return (await this.ask(`/${encodeURIComponent(id)}/cancel`, { method: "POST" })).json();
  }

  async ask(path, init, again = true) {
    this.secret ??= await this.fetchSecret(init.signal);
    const headers = { Authorization: `Bearer ${this.secret}`, "Content-Type": "application/json" };
    const response = await fetch(`${this.base}${path}`, { ...init, headers });
    if (response.ok) return response;
    if (response.status === 401 && again) {
      this.secret = null;
      return this.ask(path, init, false);
    }
    throw await refused(response);
  }

  async fetchSecret(signal) {
    const response = await fetch(this.secretUrl, { signal, redirect: "manual", headers: { Accept: "application/json" } });
    if (response.ok) return (await response.json()).secret;
    // A redirect, which leads to the sign-in page.
    if (response.type === "opaqueredirect") throw new Refused(401, { message: "You’ve been signed out. Sign in again in another tab, then try again." });
    throw await refused(response);
  }
}

async function refused(response) {
  const body = await response.json().catch(() => null);
  return new Refused(response.status, body?.error);
}
