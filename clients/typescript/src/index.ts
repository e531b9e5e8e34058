/** A client of a zettel server. */

import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
export type Note = Schemas["Note"];
export type Hit = Schemas["Hit"];
export type Event = Partial<Schemas["Add"]>;
export type SearchOptions = Omit<Schemas["Search"], "question">;
export type ContextOptions = Omit<Schemas["Context-Input"], "question">;

/** Whose memory: one scope is one memory. Without a scope, the server uses the scope of the key. */
export interface Scope {
  tenant?: string;
  user?: string;
  agent?: string;
}

/** A message of a chat API. */
export interface Message {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  name?: string;
}

export interface MemoryOptions {
  /** The key, `zk_…`. A server without keys answers only programs on its own machine. */
  key?: string;
  scope?: Scope;
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

/** An error answer. `type` is the name of a class in `zettel.errors`, such as `NotFound`. */
export class ZettelError extends Error {
  constructor(
    readonly type: string,
    message: string,
    /** The HTTP status. */
    readonly status: number,
    /** Seconds to wait before another try, if the server names them. */
    readonly retryAfter?: number,
  ) {
    super(message);
    this.name = "ZettelError";
  }
}

/**
 * The memory of one scope. Methods throw a `ZettelError`, and `TypeError` if the server cannot be reached.
 *
 * @example
 * const memory = new Memory("http://127.0.0.1:8766", { key: process.env.ZETTEL_KEY });
 * await memory.add({ content: "Ann is allergic to walnuts.", speaker: "Ann" });
 * const [hit] = await memory.search("What is Ann allergic to?", { k: 1 });
 */
export class Memory {
  /** All routes of the server, with types: `memory.api.GET("/v1/stats")`. They return errors instead of throwing them. */
  readonly api: Client<paths>;
  readonly scope: Scope;

  constructor(
    readonly url: string,
    private readonly options: MemoryOptions = {},
  ) {
    const { key, fetch } = options;
    this.scope = options.scope ?? {};
    this.api = createClient<paths>({
      baseUrl: url.replace(/\/+$/, ""),
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      ...(fetch ? { fetch } : {}),
    });
  }

  /** Return the memory of another scope, on the same server and with the same key. */
  of(scope: Scope): Memory {
    return new Memory(this.url, { ...this.options, scope });
  }

  /** Store an event and return its id. */
  async add(event: Event): Promise<string> {
    return data(await this.api.POST("/v1/events", { params: this.params, body: event as Schemas["Add"] })).id;
  }

  /** Store the messages of a chat and return the ids of their events. */
  async addMessages(messages: Message[], session?: string, occurredAt?: Date): Promise<string[]> {
    const body = {
      messages: messages as unknown as Schemas["AddMessages"]["messages"],
      session: session ?? null,
      occurred_at: occurredAt?.toISOString() ?? null,
      wait: false,
    };
    return data(await this.api.POST("/v1/events/messages", { params: this.params, body })).ids;
  }

  /** Return the hits for a question, best first. */
  async search(question: string, options: Partial<SearchOptions> = {}): Promise<Hit[]> {
    const body = { question, ...options } as Schemas["Search"];
    return data(await this.api.POST("/v1/search", { params: this.params, body })).hits as Hit[];
  }

  /** Return the notes about a question as text for a prompt, "" if there are none. */
  async context(question: string, options: Partial<ContextOptions> = {}): Promise<string> {
    const body = { question, ...options } as Schemas["Context-Input"];
    return data(await this.api.POST("/v1/context", { params: this.params, body })).context;
  }

  /** Return a note or an event, by its id or by the caller's own id. */
  async get(id: string): Promise<Note | Schemas["EventRecord"]> {
    return data(await this.api.GET("/v1/notes/{id}", { params: { ...this.params, path: { id } } }));
  }

  /** Destroy a note or an event, with everything derived from it, and return the number of deleted notes. */
  async delete(id: string): Promise<number> {
    return data(await this.api.DELETE("/v1/notes/{id}", { params: { ...this.params, path: { id } } })).deleted;
  }

  private get params(): { query: Scope } {
    return { query: this.scope };
  }
}

/** Return the data of an answer of `memory.api`. Throws a `ZettelError`. */
export function data<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.response.ok) return answer.data as T;
  const { error } = (answer.error ?? {}) as { error?: { type?: string; message?: string } };
  const seconds = Number(answer.response.headers.get("retry-after") ?? NaN);
  throw new ZettelError(
    error?.type ?? "ServerError",
    error?.message ?? `the server answered with the status ${answer.response.status}`,
    answer.response.status,
    Number.isNaN(seconds) ? undefined : seconds,
  );
}
