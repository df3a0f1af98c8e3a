// Milliseconds per token of llama.cpp with and without a grammar, for scripts/bench_grammar_peer.py.
//   usage: grammar_bench.mjs FILE.gguf GRAMMAR.gbnf TOKENS
// It samples first and asks the grammar about that token alone; if it is refused, the grammar goes over all tokens.
import {readFileSync} from "node:fs";
import {getLlama, LlamaGrammarEvaluationState, LlamaLogLevel} from "node-llama-cpp";

const [file, grammarFile, count] = process.argv.slice(2);
const llama = await getLlama({gpu: false, logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath: file});
const grammar = await llama.createGrammar({grammar: readFileSync(grammarFile, "utf8")});
const context = await model.createContext({contextSize: 2048, threads: 1});
const sequence = context.getSequence();

/** Sorted times between tokens, in milliseconds. */
async function times(temperature, constrained) {
  await sequence.clearHistory();
  const options = {temperature, seed: 5};
  if (constrained) options.grammarEvaluationState = new LlamaGrammarEvaluationState({model, grammar});
  const found = [];
  let last = performance.now();
  for await (const unused of sequence.evaluate(model.tokenize("An example of the data: "), options)) {
    void unused;
    found.push(performance.now() - last);
    last = performance.now();
    if (found.length > Number(count)) break;
  }
  return found.slice(1).sort((a, b) => a - b); // the first includes the prompt
}

for (const temperature of [0, 1]) {
  const result = {temperature};
  for (const [name, constrained] of [["free", false], ["constrained", true]]) {
    const all = await times(temperature, constrained);
    result[name] = {tokens: all.length, median: all[Math.floor(all.length / 2)], most: all.at(-1)};
  }
  console.log(JSON.stringify(result));
}
await llama.dispose();
