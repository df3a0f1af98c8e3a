// reference_logprobs.mjs MODEL TOKENS [flash]: prints the likeliest next tokens at every position as llama.cpp computes them.
import {theirDistributions} from "./distributions.mjs";

const [model, tokens, flash] = process.argv.slice(2);
console.log(JSON.stringify(await theirDistributions(model, tokens.split(",").map(Number), flash === "flash")));
