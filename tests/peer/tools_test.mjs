// Tools and structured output with the official `openai` client, the AI SDK and LangChain.
import OpenAI from "openai";
import {zodResponseFormat, zodFunction} from "openai/helpers/zod";
import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
import {generateObject, generateText, tool} from "ai";
import {ChatOpenAI} from "@langchain/openai";
import {tool as langchainTool} from "@langchain/core/tools";
import {z} from "zod";
import {expectEqual, main, test} from "./harness.mjs";
import {errorOf, key, model, stop, url} from "./server.mjs?tools";

const client = new OpenAI({baseURL: `${url}/v1`, apiKey: key, maxRetries: 0});
const messages = [{role: "user", content: "What is the weather in Lindale?"}];
// The tiny model tends to continue with white space.
const extra = {chat_template_kwargs: {enable_thinking: false}, logit_bias: {"\n": -100}};
const request = {model, messages, max_tokens: 200, temperature: 0, ...extra};
const Place = z.object({city: z.enum(["Rome", "Oslo"]), days: z.int().min(1).max(14)});
const schema = {type: "object", properties: {city: {type: "string", enum: ["Rome", "Oslo"]},
                                             days: {type: "integer", minimum: 1, maximum: 14}},
                required: ["city", "days"], additionalProperties: false};
const weather = {type: "function", function: {name: "get_weather", parameters: schema, strict: true}};
const clock = {type: "function", function: {name: "now", parameters: {type: "object", properties: {}, additionalProperties: false}}};

function expectWeather(text) {
  const found = Place.safeParse(typeof text === "string" ? JSON.parse(text) : text);
  expectEqual(found.success, true, `arguments ${text}`);
}

test("openai: required, named and allowed tools", async () => {
  for (const tool_choice of ["required", {type: "function", function: {name: "get_weather"}},
                             {type: "allowed_tools", allowed_tools: {mode: "required", tools: [weather]}}]) {
    const answer = await client.chat.completions.create(
        {...request, tools: [weather, clock], tool_choice, parallel_tool_calls: false, temperature: 0});
    const [choice] = answer.choices;
    expectEqual([choice.finish_reason, choice.message.tool_calls.length], ["tool_calls", 1], "one call");
    if (choice.message.tool_calls[0].function.name === "get_weather") expectWeather(choice.message.tool_calls[0].function.arguments);
    else expectEqual(tool_choice, "required", "a tool that may be called");
  }
});

test("openai: auto and none", async () => {
  for (const tool_choice of ["auto", "none"]) {
    const answer = await client.chat.completions.create({...request, tools: [weather], tool_choice, temperature: 0});
    expectEqual(typeof answer.choices[0].message.content, "string", "content");
  }
});

test("openai: a conversation with results, streamed", async () => {
  const first = await client.chat.completions.stream(
      {...request, tools: [weather], tool_choice: "required", parallel_tool_calls: false}).finalChatCompletion();
  const {message} = first.choices[0];
  expectWeather(message.tool_calls[0].function.arguments);
  const result = {role: "tool", tool_call_id: message.tool_calls[0].id, content: "{\"sun\": true}"};
  const answer = await client.chat.completions.create({...request, messages: [...messages, message, result], tools: [weather]});
  expectEqual(answer.choices.length, 1, "an answer");
});

test("openai: parse() with Zod", async () => {
  const answer = await client.chat.completions.parse({...request, response_format: zodResponseFormat(Place, "place")});
  expectWeather(answer.choices[0].message.parsed);
  const calls = await client.chat.completions.parse(
      {...request, tools: [zodFunction({name: "get_weather", parameters: Place})], tool_choice: "required", parallel_tool_calls: false});
  expectWeather(calls.choices[0].message.tool_calls[0].function.parsed_arguments);
});

test("openai: runTools", async () => {
  let called = null;
  const runner = client.chat.completions.runTools({
    ...request, tool_choice: {type: "function", function: {name: "get_weather"}},
    tools: [zodFunction({name: "get_weather", parameters: Place, function: (place) => { called = place; return "sun"; }})],
  }, {maxChatCompletions: 2});
  await runner.done();
  expectWeather(called);
});

test("openai: what cannot be enforced is refused by name", async () => {
  const response_format = {type: "json_schema", json_schema: {name: "x", schema: {type: "object", propertyNames: {minLength: 2}}}};
  const error = await errorOf(() => client.chat.completions.create({...request, response_format}));
  expectEqual([error.status, error.code, error.message.includes("propertyNames")], [400, "invalid_constraint", true], "error");
});

const provider = createOpenAICompatible({name: "infer", baseURL: `${url}/v1`, apiKey: key, supportsStructuredOutputs: true});
const sdk = {model: provider(model), prompt: "What is the weather in Lindale?", maxOutputTokens: 200, temperature: 0, maxRetries: 0};

test("AI SDK: objects", async () => {
  const {object} = await generateObject({...sdk, schema: Place, providerOptions: {infer: extra}});
  expectWeather(object);
});

test("AI SDK: tools", async () => {
  const {toolCalls} = await generateText({...sdk, toolChoice: "required",
                                          tools: {get_weather: tool({description: "Weather", inputSchema: Place})}});
  expectEqual(toolCalls.length > 0, true, "a call");
  for (const call of toolCalls) expectWeather(call.input);
});

const chain = new ChatOpenAI({model, apiKey: key, maxRetries: 0, maxTokens: 200, modelKwargs: extra,
                              configuration: {baseURL: `${url}/v1`}});

test("LangChain: withStructuredOutput", async () => {
  for (const method of ["jsonSchema", "functionCalling"]) {
    expectWeather(await chain.withStructuredOutput(Place, {name: "place", method}).invoke("What is the weather?"));
  }
});

test("LangChain: bound tools", async () => {
  const get = langchainTool(() => "sun", {name: "get_weather", description: "Weather", schema: Place});
  const answer = await chain.bindTools([get], {tool_choice: "get_weather"}).invoke("What is the weather?");
  expectEqual(answer.tool_calls.length, 1, "calls");
  expectWeather(answer.tool_calls[0].args);
});

try {
  await main();
} finally {
  await stop();
}
