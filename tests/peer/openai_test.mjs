// The official `openai` client talks to `infer serve`.
import OpenAI from "openai";
import {expectEqual, main, test} from "./harness.mjs";
import {errorOf, key, metric, model, stop, until, url} from "./server.mjs";

const client = new OpenAI({baseURL: `${url}/v1`, apiKey: key, maxRetries: 0});
const messages = [{role: "user", content: "Where is Lindale?"}];
const greedy = {model, messages, temperature: 0, max_tokens: 24};

test("models", async () => {
  const listed = [];
  for await (const one of client.models.list()) listed.push(one.id);
  expectEqual(listed, [model], "list");
  expectEqual((await client.models.retrieve(model)).object, "model", "one model");
  expectEqual((await errorOf(() => client.models.retrieve("other"))).status, 404, "another model");
});

test("chat", async () => {
  const answer = await client.chat.completions.create(greedy);
  const [choice] = answer.choices;
  expectEqual([choice.message.role, typeof choice.message.content], ["assistant", "string"], "message");
  expectEqual(choice.message.content.length > 0, true, "some text");
  expectEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens, "usage");
  const parts = [{role: "user", content: [{type: "text", text: "Where is "}, {type: "text", text: "Lindale?"}]}];
  const inParts = await client.chat.completions.create({...greedy, messages: parts});
  const joined = [{role: "user", content: "Where is \nLindale?"}];
  const same = await client.chat.completions.create({...greedy, messages: joined});
  expectEqual(inParts.choices[0].message.content, same.choices[0].message.content, "the same in parts");
});

test("streaming", async () => {
  const whole = await client.chat.completions.create(greedy);
  const stream = await client.chat.completions.create({...greedy, stream: true, stream_options: {include_usage: true}});
  let text = "", usage = null, reason = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    reason = chunk.choices[0]?.finish_reason ?? reason;
    usage = chunk.usage ?? usage;
  }
  expectEqual(text, whole.choices[0].message.content, "text");
  expectEqual(reason, whole.choices[0].finish_reason, "finish reason");
  expectEqual(usage.completion_tokens, whole.usage.completion_tokens, "usage");
});

test("the client's own reader of streams", async () => {
  const whole = await client.chat.completions.create(greedy);
  const final = await client.chat.completions.stream(greedy).finalChatCompletion();
  expectEqual(final.choices[0].message.content, whole.choices[0].message.content, "text");
});

test("completions", async () => {
  const request = {model, prompt: "Once upon a time", temperature: 0, max_tokens: 12};
  const whole = await client.completions.create({...request, echo: true});
  expectEqual(whole.choices[0].text.startsWith("Once upon a time"), true, "echo");
  let text = "";
  for await (const chunk of await client.completions.create({...request, stream: true})) text += chunk.choices[0].text;
  expectEqual("Once upon a time" + text, whole.choices[0].text, "streamed text");
});

test("embeddings", async () => {
  const input = ["The mayor of Lindale", "Where is Lindale?"];
  const numbers = await client.embeddings.create({model, input, encoding_format: "float"});
  const decoded = await client.embeddings.create({model, input});  // the client asks for base64 and decodes it
  expectEqual(numbers.data.map((entry) => entry.embedding.length), [256, 256], "dimensions");
  expectEqual(decoded.data.map((entry) => Array.from(entry.embedding, Math.fround)),
              numbers.data.map((entry) => entry.embedding.map(Math.fround)), "vectors");
});

test("log-probabilities", async () => {
  const answer = await client.chat.completions.create({...greedy, logprobs: true, top_logprobs: 2});
  const {content} = answer.choices[0].logprobs;
  expectEqual(content.map(({token}) => token).join(""), answer.choices[0].message.content, "tokens");
  expectEqual(content.every(({top_logprobs: top, logprob}) => top.length === 2 && top[0].logprob === logprob), true,
              "the greedy token is the likeliest");
});

test("stop", async () => {
  const {content} = (await client.chat.completions.create(greedy)).choices[0].message;
  const stop = content.slice(5, 8);
  const [choice] = (await client.chat.completions.create({...greedy, stop: [stop]})).choices;
  expectEqual([choice.message.content, choice.finish_reason], [content.slice(0, content.indexOf(stop)), "stop"], "text");
});

test("n", async () => {
  const request = {...greedy, temperature: 1, n: 3, seed: 11};
  const texts = (answer) => answer.choices.map((choice) => choice.message.content);
  const one = texts(await client.chat.completions.create(request));
  expectEqual(one.length, 3, "choices");
  expectEqual(texts(await client.chat.completions.create(request)), one, "the same seed says the same");
  const second = await client.chat.completions.create({...request, n: 1, seed: 12});
  expectEqual(texts(second), [one[1]], "the second choice is that of the next seed");
});

test("errors", async () => {
  const wrong = await errorOf(() => client.chat.completions.create({...greedy, temperature: -1}));
  expectEqual([wrong.constructor.name, wrong.status, wrong.param, wrong.type],
              ["BadRequestError", 400, "temperature", "invalid_request_error"], "a wrong parameter");
  const long = [{role: "user", content: "Once upon a time ".repeat(1000)}];
  const full = await errorOf(() => client.chat.completions.create({...greedy, messages: long}));
  expectEqual([full.status, full.code], [400, "context_length_exceeded"], "a prompt that does not fit");
  const stranger = new OpenAI({baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0});
  const refused = await errorOf(() => stranger.models.list());
  expectEqual([refused.constructor.name, refused.code], ["AuthenticationError", "invalid_api_key"], "a wrong key");
});

test("abort in mid-stream", async () => {
  const request = {model, prompt: "Once upon a time", max_tokens: 1000, stream: true, ignore_eos: true};
  const before = await metric("cancelled_requests_total");
  const tokens = await metric("generated_tokens_total");
  const stream = await client.completions.create(request);
  for await (const chunk of stream) {
    if (chunk.choices[0].text) break;
  }
  stream.controller.abort();
  await until(async () => await metric("cancelled_requests_total") === before + 1, "a cancelled request");
  await until(async () => await metric("kv_blocks_used") === 0, "free blocks");
  expectEqual(await metric("generated_tokens_total") - tokens < 1000, true, "it ended early");
});

test("refused by name", async () => {
  const {status, code, param} = await errorOf(() => client.chat.completions.create({...greedy, store: true}));
  expectEqual([status, code, param], [400, "unsupported_parameter", "store"], "error");
});

test("fewer dimensions", async () => {
  const answer = await client.embeddings.create({model, input: "Where is Lindale?", dimensions: 64});
  expectEqual(answer.data[0].embedding.length, 64, "numbers");
});

try {
  await main();
} finally {
  await stop();
}
