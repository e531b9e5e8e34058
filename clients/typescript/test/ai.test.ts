import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, simulateReadableStream, stepCountIs, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { HEAD, memoryMiddleware, memoryTools } from "../src/ai.js";
import { Memory, data } from "../src/index.js";
import { key, newMemory, url } from "./support.js";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finish = { type: "finish" as const, finishReason: { unified: "stop" as const, raw: "stop" }, usage };

type Options = Parameters<MockLanguageModelV3["doGenerate"]>[0];

function systemOf(options: Options): string {
  return options.prompt.map((message) => (message.role === "system" ? message.content : "")).join("");
}

/** A model that answers with a text, and streams its words. */
function answering(reply: (options: Options) => string): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: async (options) => ({
      content: [{ type: "text", text: reply(options) }], finishReason: finish.finishReason, usage, warnings: [],
    }),
    doStream: async (options) => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          ...reply(options).split(/(?<= )/).map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
          { type: "text-end", id: "1" },
          finish,
        ],
      }),
    }),
  });
}

async function turns(memory: Memory): Promise<string[]> {
  const { notes } = data(await memory.api.GET("/v1/notes", { params: { query: { ...memory.scope, limit: 100 } } }));
  return notes.map(({ role, content }) => `${role}: ${content}`);
}

function quiet(error: unknown): void {
  assert.ok(error);
}

test("a later conversation recalls an earlier one", async () => {
  const memory = newMemory();
  const inner = answering(() => "I see.");
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(memory) });
  await generateText({ model, prompt: "My boat is called Blue Heron." });
  assert.equal(systemOf(inner.doGenerateCalls[0]!), "");
  await generateText({ model, system: "Be brief.", prompt: "What is my boat called?" });
  const system = systemOf(inner.doGenerateCalls[1]!);
  assert.ok(system.startsWith(`Be brief.\n\n${HEAD}`));
  assert.match(system, /My boat is called Blue Heron\./);
  assert.deepEqual(await turns(memory), [
    "user: My boat is called Blue Heron.", "assistant: I see.", "user: What is my boat called?", "assistant: I see.",
  ]);
});

test("a stream passes, and its turn is stored once although each call has the whole conversation", async () => {
  const memory = newMemory();
  const model = wrapLanguageModel({ model: answering(() => "Take a warm coat."), middleware: memoryMiddleware(memory) });
  const first = streamText({ model, prompt: "It rains in Oslo." });
  assert.equal(await first.text, "Take a warm coat.");
  const next = streamText({
    model,
    messages: [
      { role: "user", content: "It rains in Oslo." },
      { role: "assistant", content: "Take a warm coat." },
      { role: "user", content: "And in Bergen?" },
    ],
  });
  await next.consumeStream();
  assert.deepEqual(await turns(memory), [
    "user: It rains in Oslo.", "assistant: Take a warm coat.", "user: And in Bergen?",
  ]);  // the second answer only repeats a recalled note
});

test("a failing model stores nothing", async () => {
  const memory = newMemory();
  const failing = new MockLanguageModelV3({ doGenerate: async () => { throw new Error("fell over"); } });
  const model = wrapLanguageModel({ model: failing, middleware: memoryMiddleware(memory) });
  await assert.rejects(generateText({ model, prompt: "Hello?", maxRetries: 0 }), /fell over/);
  const broken = new MockLanguageModelV3({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "one" },
          { type: "error", error: new Error("fell over") },
        ],
      }),
    }),
  });
  const streamed = streamText({
    model: wrapLanguageModel({ model: broken, middleware: memoryMiddleware(memory) }), prompt: "Hello?", onError: quiet,
  });
  await streamed.consumeStream({ onError: quiet });
  assert.deepEqual(await turns(memory), []);
});

test("one model serves two users at once", async () => {
  const app = new Memory(url, { key, scope: { tenant: "acme" } });
  const boats = { [`ann-${process.pid}`]: "Blue Heron", [`bo-${process.pid}`]: "Red Kite" };
  const inner = answering(() => "I see.");
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(app) });
  await Promise.all(Object.entries(boats).map(async ([user, boat]) => {
    for (let trip = 0; trip < 10; trip++) {
      const prompt = `My boat is called ${boat}, and this is trip ${trip}. What is my boat called?`;
      await generateText({ model, prompt, providerOptions: { zettel: { user, session: `s-${user}` } } });
    }
  }));
  for (const call of inner.doGenerateCalls) {
    const text = JSON.stringify(call.prompt);
    assert.ok(!(text.includes("Blue Heron") && text.includes("Red Kite")));
  }
  for (const [user, boat] of Object.entries(boats)) {
    const stored = (await turns(app.of({ tenant: "acme", user }))).filter((turn) => turn.startsWith("user"));
    assert.equal(stored.length, 10);
    assert.ok(stored.every((turn) => turn.includes(boat)));
  }
  await assert.rejects(generateText({ model, prompt: "Hello?", maxRetries: 0 }), /no user/);
});

test("a model calls the tools", async () => {
  const memory = newMemory();
  await memory.add({ content: "The spare key hangs in the barn.", speaker: "Bo" });
  const call = (toolName: string, input: object) => ({
    content: [{ type: "tool-call" as const, toolCallId: toolName, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: "tool-calls" as const, raw: "tool_calls" }, usage, warnings: [],
  });
  const inner = new MockLanguageModelV3({
    doGenerate: [
      call("search_memories", { query: "Where is the spare key?" }),
      call("add_memory", { text: "The barn has a spare key." }),
      { content: [{ type: "text", text: "In the barn." }], finishReason: finish.finishReason, usage, warnings: [] },
    ],
  });
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(memory) });
  const { text, steps } = await generateText({
    model, tools: memoryTools(memory), stopWhen: stepCountIs(5), prompt: "Where is the spare key?",
  });
  assert.equal(text, "In the barn.");
  assert.match(JSON.stringify(steps[0]?.toolResults), /The spare key hangs in the barn\./);
  assert.deepEqual(await turns(memory), [
    "null: The spare key hangs in the barn.", "user: Where is the spare key?",
    "assistant: The barn has a spare key.", "assistant: In the barn.",
  ]);
});
