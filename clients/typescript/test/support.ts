/** The server of the tests: `ZETTEL_URL`, and in `ZETTEL_APP_KEY` a key for `tenant=acme,user=*`. */

import { randomUUID } from "node:crypto";

import { Memory } from "../src/index.js";

export const url = process.env.ZETTEL_URL ?? "";
export const key = process.env.ZETTEL_APP_KEY ?? "";

/** Return a memory of a new user. */
export function newMemory(): Memory {
  return new Memory(url, { key, scope: { tenant: "acme", user: randomUUID() } });
}
