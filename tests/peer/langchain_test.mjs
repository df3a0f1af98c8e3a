// LangChain talks to `infer serve`.
import {ChatOpenAI, OpenAI, OpenAIEmbeddings} from "@langchain/openai";
import {HumanMessage, SystemMessage} from "@langchain/core/messages";
import {expectEqual, main, test} from "./harness.mjs";
import {errorOf, key, metric, model, stop, until, url} from "./server.mjs";

const common = {model, apiKey: key, maxRetries: 0, configuration: {baseURL: `${url}/v1`}};
const chat = new ChatOpenAI({...common, temperature: 0, maxTokens: 24});
const question = [new HumanMessage("Where is Lindale?")];

/** What the server says without LangChain between. */
async function plainAnswer(fields) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST", headers: {Authorization: `Bearer ${key}`},
    body: JSON.stringify({messages: [{role: "user", content: "Where is Lindale?"}], temperature: 0, ...fields})});
  return response.json();
}

test("chat", async () => {
  const plain = await plainAnswer({max_tokens: 24});
  const answer = await chat.invoke(question);
  expectEqual(answer.content, plain.choices[0].message.content, "text");
  expectEqual(answer.response_metadata.finish_reason, plain.choices[0].finish_reason, "finish reason");
  expectEqual([answer.usage_metadata.input_tokens, answer.usage_metadata.output_tokens],
              [plain.usage.prompt_tokens, plain.usage.completion_tokens], "usage");
  const system = await chat.invoke([new SystemMessage("Be brief."), ...question]);
  expectEqual(system.content.length > 0, true, "an answer with a system message");
});

test("streaming", async () => {
  const whole = await chat.invoke(question);
  let text = "", last;
  for await (const chunk of await chat.stream(question)) {
    text += chunk.content;
    last = last ? last.concat(chunk) : chunk;
  }
  expectEqual(text, whole.content, "text");
  expectEqual(last.usage_metadata.output_tokens, whole.usage_metadata.output_tokens, "usage");
  expectEqual(last.response_metadata.finish_reason, whole.response_metadata.finish_reason, "finish reason");
});

test("several at once", async () => {
  const questions = ["Where is Lindale?", "Who is the mayor?", "Hello"].map((text) => [new HumanMessage(text)]);
  const alone = [];
  for (const one of questions) alone.push((await chat.invoke(one)).content);
  expectEqual((await chat.batch(questions)).map((answer) => answer.content), alone, "texts");
});

test("stop and log-probabilities", async () => {
  const {content} = await chat.invoke(question);
  const stopped = await chat.invoke(question, {stop: [content.slice(5, 8)]});
  expectEqual(stopped.content, content.slice(0, content.indexOf(content.slice(5, 8))), "stopped text");
  const scored = new ChatOpenAI({...common, temperature: 0, maxTokens: 4, logprobs: true, topLogprobs: 2});
  const {logprobs} = (await scored.invoke(question)).response_metadata;
  expectEqual(logprobs.content.map((entry) => entry.top_logprobs.length), [2, 2, 2, 2], "likeliest tokens");
});

test("completions", async () => {
  const llm = new OpenAI({...common, temperature: 0, maxTokens: 12});
  const whole = await llm.invoke("Once upon a time");
  expectEqual(whole.length > 0, true, "some text");
  let text = "";
  for await (const piece of await llm.stream("Once upon a time")) text += piece;
  expectEqual(text, whole, "streamed text");
});

test("embeddings", async () => {
  const texts = ["The mayor of Lindale", "Where is Lindale?"];
  const embeddings = new OpenAIEmbeddings(common);
  const vectors = await embeddings.embedDocuments(texts);
  expectEqual(vectors.map((vector) => vector.length), [256, 256], "dimensions");
  expectEqual(await embeddings.embedQuery(texts[1]), vectors[1], "one alone");
  const short = await new OpenAIEmbeddings({...common, dimensions: 32}).embedQuery(texts[0]);
  expectEqual(short.length, 32, "fewer dimensions");
  const many = Array.from({length: 600}, (_, i) => `Text ${i}`);
  expectEqual((await new OpenAIEmbeddings({...common, batchSize: 600}).embedDocuments(many)).length, 600, "many texts");
});

test("errors", async () => {
  const wrong = await errorOf(() => new ChatOpenAI({...common, temperature: -1}).invoke(question));
  expectEqual([wrong.status, wrong.param], [400, "temperature"], "a wrong parameter");
  const full = await errorOf(() => chat.invoke([new HumanMessage("Once upon a time ".repeat(1000))]));
  expectEqual(/context holds 1,024/.test(full.message), true, `a prompt that does not fit: ${full.message}`);
  const stranger = new ChatOpenAI({...common, apiKey: "wrong"});
  expectEqual((await errorOf(() => stranger.invoke(question))).status, 401, "a wrong key");
});

test("abort in mid-stream", async () => {
  const before = await metric("cancelled_requests_total");
  const controller = new AbortController();
  const llm = new OpenAI({...common, maxTokens: 1000, modelKwargs: {ignore_eos: true}});
  await errorOf(async () => {
    for await (const piece of await llm.stream("Once upon a time", {signal: controller.signal})) {
      if (piece) controller.abort();
    }
  });
  await until(async () => await metric("cancelled_requests_total") === before + 1, "a cancelled request");
  await until(async () => await metric("kv_blocks_used") === 0, "free blocks");
});

try {
  await main();
} finally {
  await stop();
}
