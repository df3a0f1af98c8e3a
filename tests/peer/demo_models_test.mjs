// llama.cpp loads the models that ship with the program, cuts text into the same tokens and gives the same greedy
// answers; another chat template engine renders the same prompts.
import {execFileSync} from "node:child_process";
import {readFileSync} from "node:fs";
import {Template} from "@huggingface/jinja";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";
import {expectEqual, main, root, test} from "./harness.mjs";

const MODELS = ["infer-demo-5m-q8_0", "infer-demo-draft-q8_0", "infer-demo-draft-f16"];
const ANSWERS = JSON.parse(readFileSync(new URL("tests/data/demo_answers.json", root)));
const MOST_TOKENS = 200;
// Activations are quantized per 256 values here and per 32 there. Where two tokens of a draft are closer than this in
// log probability (the grammar it learned leaves some choices to chance), that decides, and both answers are right.
const TIE = 0.05;

// The prebuilt binary, never compiled here; one thread is the fastest for models this small.
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: LlamaLogLevel.error});
const path = (name) => new URL(`models/${name}.gguf`, root).pathname;
const loaded = {};

/** The model of that name and a sequence to run it in. */
async function load(name) {
  if (!loaded[name]) {
    const model = await llama.loadModel({modelPath: path(name)});
    const context = await model.createContext({contextSize: 1024, threads: 1});
    loaded[name] = {model, sequence: context.getSequence()};
  }
  return loaded[name];
}

async function greedy({model, sequence}, prompt) {
  await sequence.clearHistory();
  const answer = [];
  for await (const token of sequence.evaluate(model.tokenize(prompt, true), {temperature: 0})) {
    if (model.isEogToken(token) || answer.length === MOST_TOKENS) break;
    answer.push(token);
  }
  return model.detokenize(answer, true);
}

const infer = (...parameters) => execFileSync(process.env.INFER_BINARY, parameters, {encoding: "utf8", input: ""});

const tokensOf = (name, text) => JSON.parse(infer("tokenize", "-m", path(name), "--json", text)).tokens;

/** Whether our engine sees no clear winner where the two answers part. */
function tied(name, prompt, ours, theirs) {
  const [one, other] = [ours, theirs].map((answer) => tokensOf(name, prompt + answer));
  const at = one.findIndex((token, i) => token !== other[i]);
  if (at < 0 || other[at] === undefined) return false;
  const all = JSON.parse(infer("logprobs", "-m", path(name), "-t", "1", "--tokens", one.slice(0, at).join(), "--json"));
  const logprob = new Map(all.positions[at - 1]);
  return Math.abs(logprob.get(one[at]) - logprob.get(other[at])) < TIE;
}

for (const name of MODELS) {
  for (const entry of ANSWERS) {
    test(`${name}: ${entry.name}`, async () => {
      const peer = await load(name);
      expectEqual(Array.from(peer.model.tokenize(entry.prompt, true)), tokensOf(name, entry.prompt), "tokens");
      const ours = infer("run", "-m", path(name), "--raw", "--temp", "0", "-n", String(MOST_TOKENS), "-t", "1",
                         "--quiet", "-p", entry.prompt);
      const theirs = await greedy(peer, entry.prompt);
      if (name === MODELS[0]) expectEqual(theirs, entry.answer, "recorded answer");
      if (name !== MODELS[0] && theirs !== ours && tied(name, entry.prompt, ours, theirs)) {
        console.log(`tie: ${name}: ${entry.name}: ${JSON.stringify(ours)}, llama.cpp: ${JSON.stringify(theirs)}`);
      } else {
        expectEqual(theirs, ours, "greedy answer");
      }
    });
  }
}

for (const {name, conversation, prompt} of ANSWERS.filter((entry) => entry.conversation)) {
  test(`chat template: ${name}`, async () => {
    const template = (await load(MODELS[0])).model.fileInfo.metadata.tokenizer.chat_template;
    const text = new Template(template).render({add_generation_prompt: true, ...conversation});
    expectEqual(text, prompt, "rendered conversation");
  });
}

await main();
process.exit();
