// Files of `infer quantize`, of every type: @huggingface/gguf reads them and finds what should be in them, and
// llama.cpp computes the same distributions from them as our engine.
import {execFileSync} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {GGMLFileQuantizationType, GGMLQuantizationType, gguf} from "@huggingface/gguf";
import {TOP, ourDistributions, theirDistributions} from "./distributions.mjs";
import {expectEqual, main, root, test} from "./harness.mjs";

const TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M",
               "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4",
               "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "TQ1_0",
               "TQ2_0", "Q1_0", "Q2_0"];
// Of the 20 likeliest tokens at every position, in natural log: the limits of the reference models in goldens/arch of
// the reference data. llama.cpp rounds activations to 8 bits per 32 values for the types in blocks of 32, to BF16 for
// BF16 and to F16 for F16.
const LIMITS = {F32: 1e-3, F16: 0.02, BF16: 0.15};
const QUANTIZED_LIMIT = 0.4;

const folder = mkdtempSync(join(tmpdir(), "infer-peer-"));
const infer = (...parameters) => execFileSync(process.env.INFER_BINARY, parameters,
                                              {encoding: "utf8", input: "", maxBuffer: 1 << 28, stdio: "pipe"});
const inSource = (path) => new URL(path, root).pathname;

function quantized(from, name, ...parameters) {
  const path = join(folder, `${name}.gguf`);
  infer("quantize", from, path, ...parameters, "--allow-requantize");
  return path;
}

const recordedTokens = (name) => JSON.parse(readFileSync(inSource(`tests/data/arch/${name}.json`))).tokens;

/** A copy in which every token goes to all experts: where the choice is close, a last bit would decide it. */
function withAllExperts(name, key, nExperts) {
  const [bytes, path] = [readFileSync(inSource(`tests/data/arch/${name}.gguf`)), join(folder, `${name}.gguf`)];
  const typeBytes = 4;
  bytes.writeUInt32LE(nExperts, bytes.indexOf(key) + key.length + typeBytes);
  writeFileSync(path, bytes);
  return path;
}

// A trained model, a random one whose rows suit every type, and a random mixture of experts whose rows do not.
const DEMO = inSource("models/infer-demo-5m-q8_0.gguf");
const TEXT = "What is the capital of Lindale? Once upon a time there was a small cat who lived by the river.";
const SOURCES = [
  {name: "demo", path: quantized(DEMO, "demo", "F16"),
   tokens: JSON.parse(infer("tokenize", "-m", DEMO, "--json", TEXT)).tokens},
  {name: "llama", path: quantized(inSource("tests/data/arch/quant-q8_0.gguf"), "llama", "F32"),
   tokens: recordedTokens("quant-q8_0")},
  {name: "qwen3moe", path: withAllExperts("qwen3moe", "qwen3moe.expert_used_count", 4),
   tokens: recordedTokens("qwen3moe")},
];

async function expectSameDistributions(path, tokens, limit) {
  const ours = ourDistributions(path, tokens);
  const theirs = await theirDistributions(path, tokens);
  expectEqual(theirs.length, ours.length, "positions");
  const differences = theirs.flatMap(
    (entries, at) => entries.map(([token, logprob]) => Math.abs(logprob - ours[at].get(token))));
  expectEqual(differences.length, tokens.length * TOP, "compared entries");
  const largest = differences.reduce((a, b) => (a > b ? a : b));
  if (!(largest <= limit)) throw new Error(`log probabilities differ by ${largest}, at most ${limit} expected`);
}

// What @huggingface/gguf reads

async function read(path) {
  const {metadata, tensorInfos} = await gguf(path, {allowLocalFile: true});
  const tensors = tensorInfos.map(
    ({name, shape, dtype}) => [name, Array.from(shape, Number).reverse(), GGMLQuantizationType[dtype]]);
  const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
  return {metadata: Object.entries(metadata).map(([key, value]) => [key, plain(value)]), tensors};
}

const NEW_KEYS = ["kv_count", "general.file_type", "general.quantization_version"];

async function expectReadable(path, source, type) {
  const [found, before] = [await read(path), await read(source)];
  const kept = ({metadata}) => metadata.filter(([key]) => !NEW_KEYS.includes(key));
  expectEqual(kept(found), kept(before), "metadata");
  const keys = new Map(found.metadata);
  expectEqual(GGMLFileQuantizationType[keys.get("general.file_type")].replace("_MOE", ""), type, "general.file_type");
  expectEqual(keys.get("general.quantization_version"), 2, "general.quantization_version");
  expectEqual(found.tensors.map(([name, shape]) => [name, shape]), before.tensors.map(([name, shape]) => [name, shape]),
              "tensors");
  const listed = JSON.parse(infer("inspect", path, "--tensors", "--json")).tensors;
  expectEqual(found.tensors, listed.map((tensor) => [tensor.name, tensor.shape, tensor.type]), "types of tensors");
}

for (const {name, path: source, tokens} of SOURCES) {
  for (const type of TYPES) {
    const limit = LIMITS[type] ?? QUANTIZED_LIMIT;
    test(`${name} ${type}`, async () => {
      const path = quantized(source, `${name}-${type}`, type);
      await expectReadable(path, source, type);
      await expectSameDistributions(path, tokens, limit);
    });
  }
}

test("parts, with an importance matrix", async () => {
  const matrix = join(folder, "matrix.gguf");
  const {path: source, tokens} = SOURCES[0];
  infer("imatrix", "-m", source, "-f", inSource("README.md"), "-o", matrix, "-c", "128", "--chunks", "4", "-t", "1");
  const {metadata} = await read(matrix);
  expectEqual(new Map(metadata).get("general.type"), "imatrix", "general.type");
  quantized(source, "parts", "Q4_K_M", "--imatrix", matrix, "--split-size", "1M");
  const parts = readdirSync(folder).filter((name) => name.startsWith("parts-")).sort();
  expectEqual(parts.length > 1, true, "several parts");
  await expectSameDistributions(join(folder, parts[0]), tokens, QUANTIZED_LIMIT);
});

try {
  await main();
} finally {
  rmSync(folder, {recursive: true});
}
process.exit();
