import assert from "node:assert/strict";
import { test } from "node:test";

import { Memory, ZettelError, data } from "../src/index.js";
import { key, newMemory, url } from "./support.js";

test("an event is added, found, read and deleted", async () => {
  const memory = newMemory();
  const id = await memory.add({ content: "Ann is allergic to walnuts.", speaker: "Ann", external_id: "boats/blue heron" });
  const [hit] = await memory.search("What is Ann allergic to?", { k: 1 });
  assert.equal(hit?.note.content, "Ann is allergic to walnuts.");
  assert.ok(hit.score > 0);
  assert.match(await memory.context("What is Ann allergic to?"), /walnuts/);
  const found = await memory.get("boats/blue heron");
  assert.equal(found.content, "Ann is allergic to walnuts.");
  assert.equal(await memory.delete(id), 1);
  assert.deepEqual(await memory.search("walnuts"), []);
});

test("a filter selects by metadata", async () => {
  const memory = newMemory();
  await memory.add({ content: "The red kettle costs little.", metadata: { price: 3 } });
  await memory.add({ content: "The blue kettle costs much.", metadata: { price: 30 } });
  const hits = await memory.search("kettle", { filter: { price: { gte: 10 } } });
  assert.deepEqual(hits.map(({ note }) => note.content), ["The blue kettle costs much."]);
});

test("messages of a chat are stored in a session", async () => {
  const memory = newMemory();
  const ids = await memory.addMessages(
    [{ role: "user", content: "It rains." }, { role: "assistant", content: "Take a coat." }], "s", new Date(0),
  );
  assert.equal(ids.length, 2);
  const { notes } = data(await memory.api.GET("/v1/notes", { params: { query: { ...memory.scope, session: "s" } } }));
  assert.deepEqual(notes.map(({ role, content }) => [role, content]), [
    ["user", "It rains."], ["assistant", "Take a coat."],
  ]);
});

test("errors have a type, a message and a status", async () => {
  const memory = newMemory();
  await assert.rejects(memory.get("n_0"), (error: ZettelError) => {
    assert.ok(error instanceof ZettelError);
    assert.deepEqual([error.type, error.status], ["NotFound", 404]);
    return true;
  });
  await assert.rejects(memory.search("kettle", { filter: { price: { near: 1 } } }), { type: "InvalidInput", status: 422 });
  await assert.rejects(new Memory(url, { key: "zk_wrong" }).search("kettle"), { type: "InvalidKey", status: 401 });
  await assert.rejects(memory.of({ tenant: "other" }).search("kettle"), { type: "PermissionDenied", status: 403 });
  await assert.rejects(new Memory("http://127.0.0.1:9").search("kettle"), TypeError);
  const broken = new Memory(url, { key, fetch: async () => new Response("<html>", { status: 502 }) });
  await assert.rejects(broken.search("kettle"), { type: "ServerError", status: 502 });
  const busy = async () => new Response('{"error": {"type": "ServerBusy", "message": "busy"}}', {
    status: 503, headers: { "retry-after": "2", "content-type": "application/json" },
  });
  await assert.rejects(new Memory(url, { fetch: busy }).search("kettle"), { message: "busy", retryAfter: 2 });
});

test("two users at once have two memories", async () => {
  const users = [newMemory(), newMemory()];
  await Promise.all(users.map(async (memory, n) => {
    for (let round = 0; round < 10; round++) {
      await memory.add({ content: `Boat number ${n} sails on trip ${round}.` });
      for (const { note } of await memory.search("Which boat sails?")) {
        assert.match(note.content, new RegExp(`^Boat number ${n} `));
      }
    }
  }));
});
