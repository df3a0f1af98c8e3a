// The AI SDK talks to `infer serve`.
import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
import {embed, embedMany, generateText, streamText} from "ai";
import {expectEqual, main, test} from "./harness.mjs";
import {errorOf, key, metric, model, stop, until, url} from "./server.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // of options that the SDK itself does not send

const settings = {name: "infer", baseURL: `${url}/v1`, apiKey: key, includeUsage: true};
const provider = createOpenAICompatible(settings);
const greedy = {
  model: provider(model), prompt: "Where is Lindale?", temperature: 0, maxOutputTokens: 24, maxRetries: 0};

test("chat", async () => {
  const answer = await generateText(greedy);
  expectEqual(answer.text.length > 0, true, "some text");
  expectEqual(["stop", "length"].includes(answer.finishReason), true, `finish reason ${answer.finishReason}`);
  expectEqual(answer.usage.inputTokens + answer.usage.outputTokens, answer.usage.totalTokens, "usage");
  const again = await generateText({...greedy, system: "Be brief.", messages: [{role: "user", content: "Hello"}],
                                    prompt: undefined});
  expectEqual(again.text.length > 0, true, "an answer with a system message");
});

test("streaming", async () => {
  const whole = await generateText(greedy);
  const stream = streamText(greedy);
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  expectEqual(text, whole.text, "text");
  expectEqual(await stream.finishReason, whole.finishReason, "finish reason");
  expectEqual((await stream.usage).outputTokens, whole.usage.outputTokens, "usage");
});

test("sampling parameters", async () => {
  const request = {...greedy, temperature: 1, topP: 0.9, presencePenalty: 0.5, frequencyPenalty: 0.5, seed: 11};
  const one = await generateText(request);
  expectEqual((await generateText(request)).text, one.text, "the same seed says the same");
  const {text} = await generateText(greedy);
  const stopped = await generateText({...greedy, stopSequences: [text.slice(5, 8)]});
  expectEqual(stopped.text, text.slice(0, text.indexOf(text.slice(5, 8))), "stopped text");
});

test("completions", async () => {
  const request = {...greedy, model: provider.completionModel(model), prompt: "Once upon a time"};
  const whole = await generateText(request);
  expectEqual(whole.text.length > 0, true, "some text");
  const stream = streamText(request);
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  expectEqual(text, whole.text, "streamed text");
  expectEqual(await stream.finishReason, whole.finishReason, "finish reason");
});

test("embeddings", async () => {
  const embedding = provider.embeddingModel(model);
  const values = ["The mayor of Lindale", "Where is Lindale?"];
  const {embeddings, usage} = await embedMany({model: embedding, values, maxRetries: 0});
  expectEqual(embeddings.map((vector) => vector.length), [256, 256], "dimensions");
  expectEqual(usage.tokens > 0, true, "usage");
  expectEqual((await embed({model: embedding, value: values[1], maxRetries: 0})).embedding, embeddings[1], "one alone");
});

test("errors", async () => {
  const wrong = await errorOf(() => generateText({...greedy, temperature: -1}));
  expectEqual([wrong.statusCode, /temperature/.test(wrong.message)], [400, true], "a wrong parameter");
  const full = await errorOf(() => generateText({...greedy, prompt: "Once upon a time ".repeat(1000)}));
  expectEqual([full.statusCode, JSON.parse(full.responseBody).error.code, JSON.parse(full.responseBody).error.n_ctx],
              [400, "context_length_exceeded", 1024], "a prompt that does not fit");
  const stranger = createOpenAICompatible({...settings, apiKey: "wrong"});
  expectEqual((await errorOf(() => generateText({...greedy, model: stranger(model)}))).statusCode, 401, "a wrong key");
});

test("abort in mid-stream", async () => {
  const before = await metric("cancelled_requests_total");
  const controller = new AbortController();
  const stream = streamText({...greedy, temperature: 1, maxOutputTokens: 1000, abortSignal: controller.signal,
                             providerOptions: {infer: {ignore_eos: true}}});
  for await (const part of stream.fullStream) {
    if (part.type === "text-delta") controller.abort();
    if (part.type === "abort") break;
  }
  await until(async () => await metric("cancelled_requests_total") === before + 1, "a cancelled request");
  await until(async () => await metric("kv_blocks_used") === 0, "free blocks");
});

try {
  await main();
} finally {
  await stop();
}
