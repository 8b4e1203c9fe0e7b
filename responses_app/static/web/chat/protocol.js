// Client of the public API.

export class ApiError extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server returned an error (HTTP ${status}).`);
    this.status = status;
    this.code = error?.code ?? null;
    this.param = error?.param ?? null;
  }
}

export class Api {
  // `secretUrl` returns the API key of the signed-in user's browser for a project. The key is renewed after a 401.
  constructor(base, secretUrl) {
    this.base = base;
    this.secretUrl = secretUrl;
    this.secret = null;
  }

  async create(body, signal, headers) {
    return (await this.request("", { method: "POST", body: JSON.stringify(body), signal, headers })).body;
  }

  async replay(id, after, signal) {
    const query = new URLSearchParams({ stream: "true", include_obfuscation: "false" });
    if (after >= 0) query.set("starting_after", after);
    return (await this.request(`/${encodeURIComponent(id)}?${query}`, { signal })).body;
  }

  async cancel(id) {
    return (await this.request(`/${encodeURIComponent(id)}/cancel`, { method: "POST" })).json();
  }

  async request(path, init, retry = true) {
    this.secret ??= await this.fetchSecret(init.signal);
    // The browser itself names the type of a form.
    const type = init.body instanceof FormData ? {} : { "Content-Type": "application/json" };
    const headers = { Authorization: `Bearer ${this.secret}`, ...type, ...init.headers };
    const response = await fetch(`${this.base}${path}`, { ...init, headers });
    if (response.ok) return response;
    if (response.status === 401 && retry) {
      this.secret = null;
      return this.request(path, init, false);
    }
    throw await toError(response);
  }

  async fetchSecret(signal) {
    const response = await fetch(this.secretUrl, { signal, redirect: "manual", headers: { Accept: "application/json" } });
    if (response.ok) return (await response.json()).secret;
    // A redirect to the sign-in page.
    if (response.type === "opaqueredirect") throw new ApiError(401, { message: "You’ve been signed out. Sign in again in another tab, then try again." });
    throw await toError(response);
  }
}

async function toError(response) {
  const body = await response.json().catch(() => null);
  return Object.assign(new ApiError(response.status, body?.error), { headers: response.headers });
}
