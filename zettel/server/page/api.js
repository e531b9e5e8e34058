// The server, as the page sees it. The key stays in this tab (sessionStorage) and goes nowhere but into the header.

const KEY = "zettel.key", SCOPE = "zettel.scope";

/** An answer that says no, in the words of the server. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const PARTS = ["tenant", "user", "agent"];
export const key = () => sessionStorage.getItem(KEY) ?? "";
export const keepKey = value => sessionStorage.setItem(KEY, value);
/** The chosen scope; null before one was chosen, when the server takes that of the key. */
export const scope = () => JSON.parse(sessionStorage.getItem(SCOPE) ?? "null");
export const keepScope = value => sessionStorage.setItem(SCOPE, JSON.stringify(value));

let askForKey = async () => false;
/** `ask(message)` gets a key from whoever sits there, and tells whether there is one to try. */
export function whenKeyIsWanted(ask) {
  askForKey = ask;
}

/** What the server answers to a request, as a value. Raises `Refused`. */
export async function call(method, path, { query = {}, body, scoped = true, signal } = {}) {
  for (;;) {
    const url = new URL(`v1/${path}`, document.baseURI), used = key();
    for (const [name, value] of Object.entries({ ...(scoped ? scope() : {}), ...query })) {
      if (value !== null && value !== undefined) url.searchParams.set(name, value);
    }
    const headers = { Accept: "application/json" };
    if (used) headers.Authorization = `Bearer ${used}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(url, { method, headers, signal, cache: "no-store", body: body && JSON.stringify(body) })
      .catch(error => { throw error.name === "AbortError" ? error : new Refused(0, "the server does not answer"); });
    if (response.ok) return response.status === 204 ? null : response.json();
    const told = (await response.json().catch(() => null))?.error?.message ?? `the server answered ${response.status}`;
    if (response.status !== 401) throw new Refused(response.status, told);
    const another = key() !== used;  // somebody typed it while this one was on its way
    if (!another && !await askForKey(used ? told : "")) throw new Refused(401, told);
  }
}

const of = (id, rest = "") => `notes/${encodeURIComponent(id)}${rest}`;

export const search = (body, signal) => call("POST", "search", { body, signal });
export const graph = (query, signal) => call("GET", "graph", { query, signal });
export const note = id => call("GET", of(id));
export const history = id => call("GET", of(id, "/history"));
export const links = id => call("GET", of(id, "/links"));
export const away = cursor => call("GET", "notes", { query: { archived: true, limit: 100, cursor } });
export const add = body => call("POST", "events", { body });
export const update = (id, fields) => call("PATCH", of(id), { body: fields });
export const remove = id => call("DELETE", of(id));
export const act = (id, what, body) => call("POST", of(id, `/${what}`), { body });
export const review = () => call("GET", "review");
export const conflicts = () => call("GET", "conflicts");
export const entities = limit => call("GET", "entities", { query: { limit } });
export const entity = name => call("GET", "entities/details", { query: { name } });
export const split = (name, other) => call("POST", "entities/split", { body: { name, other } });
export const jobs = () => call("GET", "jobs");
export const retry = id => call("POST", "jobs/retry", id ? { body: { id } } : {});
export const cancel = id => call("POST", `jobs/${encodeURIComponent(id)}/cancel`);
export const stats = () => call("GET", "stats");
export const usage = () => call("GET", "usage");
export const right = () => call("GET", "right");
export const scopes = () => call("GET", "scopes", { scoped: false });
