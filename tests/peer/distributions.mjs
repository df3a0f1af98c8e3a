// The likeliest next tokens at every position of a text, as our engine and llama.cpp compute them.
import {execFileSync} from "node:child_process";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

export const TOP = 20;

const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: LlamaLogLevel.error});

/** Of every position the TOP likeliest next tokens, [token, log probability]; context and cache as exact as they come. */
export async function theirDistributions(path, tokens, flashAttention = false) {
  const model = await llama.loadModel({modelPath: path});
  try {
    const context = await model.createContext({contextSize: 256, threads: 1, flashAttention,
                                               experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
    const wanted = {generateNext: {logits: true, options: {temperature: 0}}};
    const steps = await context.getSequence().controlledEvaluate(tokens.map((token) => [token, wanted]));
    return steps.map(({next: {logits}}) => {
      const entries = Array.from(logits).sort((a, b) => b[1] - a[1]);
      const largest = entries[0][1];
      const logSum = largest + Math.log(entries.reduce((sum, [, logit]) => sum + Math.exp(logit - largest), 0));
      return entries.slice(0, TOP).map(([token, logit]) => [token, logit - logSum]);
    });
  } finally {
    await model.dispose();
  }
}

/** Of every position a map from all tokens to their log probabilities. */
export function ourDistributions(path, tokens) {
  const text = execFileSync(process.env.INFER_BINARY,
                            ["logprobs", "-m", path, "--tokens", tokens.join(), "--top", "100000", "--json", "-t", "1",
                             "-ctk", "f32", "-ctv", "f32"],
                            {encoding: "utf8", input: "", maxBuffer: 1 << 28, stdio: "pipe"});
  return JSON.parse(text).positions.map((entries) => new Map(entries));
}
