// Speed of our program and of llama.cpp with the same files, run alternately on the same machine
// (scripts/bench_peer.sh).
//
// Ours is `infer bench`, one process per round, with its own warm-up. llama.cpp is loaded once and waits, without using
// the processor, while ours runs. Both get the same token ids, F16 keys and values, the file mapped from the page cache
// or read into memory, and are timed by the wall clock around whole evaluations:
//   prefill  a prompt into an empty context, in one batch; llama.cpp without logits, ours with its first token
//   decode   tokens one by one after a context of --depth tokens
//   streams  the same for several sequences side by side, one token of each per step; tokens per second of all together
// Ours samples each generated token greedily; llama.cpp computes its logits, and nothing is sampled. llama.cpp is
// driven by the calls that node-llama-cpp itself makes per batch, without what its sequences do around them.
//
// Threads that spin until the others arrive lose far more than one core's share to a process that takes one of their
// cores. So a measurement during which other processes used more than OTHERS_LIMIT of a core is repeated, for
// --patience seconds at most.
import {execFile} from "node:child_process";
import {readFileSync} from "node:fs";
import {basename} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {parseArgs, promisify} from "node:util";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const TESTS = ["prefill", "decode", "streams"];
const ATTENTION = {on: [true], off: [false], both: [true, false]};
const BATCH = 512;
const OTHERS_LIMIT = 0.15;  // cores

const {values: flags, positionals: files} = parseArgs({
  allowPositionals: true,
  options: {
    rounds: {type: "string", default: "5"},
    threads: {type: "string", default: "2"},
    prompt: {type: "string", default: "512"},    // tokens, at most BATCH
    depth: {type: "string", default: "128"},     // tokens of context before generation, at most BATCH
    tokens: {type: "string", default: "32"},     // generated per round by one sequence
    streams: {type: "string", default: "16"},    // sequences side by side
    "stream-tokens": {type: "string", default: "16"},  // generated per round by each of them
    only: {type: "string", default: TESTS.join()},
    "flash-attention": {type: "string", default: "both"},  // llama.cpp's: on, off, or both alternately (the better counts)
    patience: {type: "string", default: "60"},             // seconds to wait for a machine without other work
    "no-mmap": {type: "boolean", default: false},          // both read the file into memory of their own
    json: {type: "boolean", default: false},
  },
});

function usageError(message) {
  console.error(`bench.mjs: ${message}`);
  process.exit(2);
}

function count(name, most = 1 << 20) {
  const value = Number(flags[name]);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  return usageError(`--${name}: 1 to ${most}, found ${flags[name]}`);
}

const options = {
  rounds: count("rounds"), threads: count("threads", 256), prompt: count("prompt", BATCH), depth: count("depth", BATCH),
  tokens: count("tokens"), streams: count("streams", 64), streamTokens: count("stream-tokens"),
  patience: count("patience"),
  tests: flags.only.split(","), attention: ATTENTION[flags["flash-attention"]],
};
if (files.length === 0) usageError("no file to measure");
if (!options.tests.every((test) => TESTS.includes(test))) usageError(`--only: of ${TESTS}, found ${flags.only}`);
if (!options.attention) usageError(`--flash-attention: on, off or both, found ${flags["flash-attention"]}`);

// Figures

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share, below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

const summary = (rates) => ({median: quantile(rates, 0.5), quartiles: [quantile(rates, 0.25), quantile(rates, 0.75)],
                             rounds: rates});

/** The token ids of `infer bench`: of the i-th request, counted from 1. */
const tokenIds = (request, length, vocabulary) =>
  Uint32Array.from({length}, (_, t) => (request * 7919 + t * 31) % vocabulary);

// What else the machine does

/** Processor seconds so far: of this machine, and of this process with the children that have ended. */
function processorSeconds() {
  const ticks = 100;
  const [user, nice, system] = readFileSync("/proc/stat", "utf8").match(/\d+/g).map(Number);
  const own = readFileSync("/proc/self/stat", "utf8").replace(/^.*\) /, "").split(" ").slice(11, 15).map(Number);
  return {all: (user + nice + system) / ticks, own: own.reduce((a, b) => a + b) / ticks};
}

/** The result of `work`, and how many cores other processes used meanwhile. */
async function besideOthers(work) {
  const [start, before] = [process.hrtime.bigint(), processorSeconds()];
  const result = await work();
  const [elapsed, after] = [Number(process.hrtime.bigint() - start) / 1e9, processorSeconds()];
  return {result, others: (after.all - before.all - (after.own - before.own)) / elapsed};
}

let disturbed = 0;  // measurements that count although other processes were busy

/** The result of `work` done without others at work; or with them, when patience is at its end. */
async function undisturbed(work) {
  for (const end = Date.now() + 1000 * options.patience;;) {
    while (Date.now() < end && (await besideOthers(() => sleep(500))).others > OTHERS_LIMIT);
    const {result, others} = await besideOthers(work);
    if (others <= OTHERS_LIMIT) return result;
    if (Date.now() < end) continue;
    disturbed += 1;
    return result;
  }
}

async function seconds(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

// Ours

/** Tokens per second of the tests of one process, by name; and what the machine could do meanwhile. */
async function measureOurs(file, tests) {
  const one = tests.includes("streams") ? {batch: options.streams, tokens: options.streamTokens}
                                        : {batch: 1, tokens: options.tokens};
  const parameters = ["bench", "-m", file, ...(flags["no-mmap"] ? ["--no-mmap"] : []), "-t", options.threads,
                      "-r", 1, "--json", "-b", one.batch,
                      "-p", tests.includes("prefill") ? options.prompt : 0,
                      "-n", tests.some((test) => test !== "prefill") ? one.tokens : 0, "-d", options.depth];
  const {stdout} = await promisify(execFile)(process.env.INFER_BINARY, parameters.map(String));
  const {machine, results} = JSON.parse(stdout);
  const rates = results.map(({test, batch, tokens_per_second}) =>
                              [test === "decode" && batch > 1 ? "streams" : test, tokens_per_second]);
  return {machine, rates: Object.fromEntries(rates)};
}

// llama.cpp

/** A context of llama.cpp with the tests as functions; `flashAttention` is its setting. */
class Peer {
  contexts = [];

  static async create(model, flashAttention) {
    const sizes = {threads: options.threads, batchSize: BATCH, flashAttention};
    const length = Math.max(options.prompt, options.depth + options.tokens);
    const peer = new Peer();
    const context = async (parameters) => {
      peer.contexts.push(await model.createContext({...sizes, ...parameters}));
      return peer.contexts.at(-1)._ctx;
    };
    peer.vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    peer.flashAttention = flashAttention;
    peer.one = await context({contextSize: length});
    if (options.tests.includes("streams")) {
      peer.many = await context({sequences: options.streams, contextSize: options.depth + options.streamTokens});
      const tokens = tokenIds(1, options.depth, peer.vocabulary);
      await peer.#evaluate(peer.many, [{tokens, sequence: 0, position: 0}]);
      for (let i = 1; i < options.streams; ++i) await peer.many.copySequenceStateFromOtherSequence(i, 0);
    }
    return peer;
  }

  /** One batch: parts of sequences, with logits for their last tokens if `logits`. */
  async #evaluate(context, parts, logits = false) {
    context.initBatch(parts.reduce((sum, {tokens}) => sum + tokens.length, 0));
    for (const {tokens, sequence, position} of parts) {
      context.addToBatch(sequence, position, tokens, Uint32Array.from(logits ? [tokens.length - 1] : []));
    }
    await context.decodeBatch();
  }

  async dispose() {
    for (const context of this.contexts) await context.dispose();
  }

  async prefill() {
    const tokens = tokenIds(1, options.prompt, this.vocabulary);
    this.one.disposeSequence(0);
    return options.prompt / await seconds(() => this.#evaluate(this.one, [{tokens, sequence: 0, position: 0}]));
  }

  async decode() {
    const tokens = tokenIds(1, options.depth, this.vocabulary);
    this.one.disposeSequence(0);
    await this.#evaluate(this.one, [{tokens, sequence: 0, position: 0}]);
    return this.#generate(this.one, 1, options.tokens);
  }

  async streams() {
    for (let i = 0; i < options.streams; ++i) this.many.removeTokenCellsFromSequence(i, options.depth, -1);
    return this.#generate(this.many, options.streams, options.streamTokens);
  }

  async #generate(context, sequences, length) {
    const ids = Array.from({length: sequences}, (_, i) => tokenIds(i + 2, length, this.vocabulary));
    const time = await seconds(async () => {
      for (let t = 0; t < length; ++t) {
        const parts = ids.map((tokens, sequence) => ({tokens: tokens.subarray(t, t + 1), sequence,
                                                      position: options.depth + t}));
        await this.#evaluate(context, parts, true);
      }
    });
    return sequences * length / time;
  }
}

/** llama.cpp's release, and the library of kernels that it chose for this processor. */
function peerVersion(llama) {
  const mapped = readFileSync("/proc/self/maps", "utf8").match(/libggml-cpu-[^/\s]*\.so/);
  return {release: llama.llamaCppRelease.release, kernels: mapped ? mapped[0] : "unknown"};
}

// In turns

async function measure(llama, file) {
  const model = await llama.loadModel({modelPath: file, gpuLayers: 0, useMmap: !flags["no-mmap"]});
  const peers = [];
  for (const flashAttention of options.attention) peers.push(await Peer.create(model, flashAttention));
  const ours = Object.fromEntries(options.tests.map((test) => [test, []]));
  const theirs = peers.map(({flashAttention}) => ({flashAttention, rates: structuredClone(ours)}));
  const machines = [];

  async function runOurs(tests) {
    if (tests.length === 0) return;
    const {machine, rates} = await undisturbed(() => measureOurs(file, tests));
    machines.push(machine);
    for (const test of tests) ours[test].push(rates[test]);
  }
  async function runTheirs(tests, isWarmUp = false) {
    for (const test of tests) {
      for (const [i, peer] of peers.entries()) {
        if (isWarmUp) await peer[test]();
        else theirs[i].rates[test].push(await undisturbed(() => peer[test]()));
      }
    }
  }

  // infer generates its streams in a process of its own. The program that starts a round alternates.
  const groups = [options.tests.filter((test) => test !== "streams"),
                  options.tests.filter((test) => test === "streams")];
  disturbed = 0;
  await runTheirs(options.tests, true);
  for (let round = 0; round < options.rounds; ++round) {
    for (const tests of groups) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[Kround ${round + 1} of ${options.rounds}: ${tests}`);
      const order = [runOurs, runTheirs];
      for (const run of round % 2 === 0 ? order : order.reverse()) await run(tests);
    }
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  for (const peer of peers) await peer.dispose();
  await model.dispose();

  const results = options.tests.map((test) => {
    const settings = theirs.map(
      ({flashAttention, rates}) => ({flash_attention: flashAttention, ...summary(rates[test])}));
    const best = settings.reduce((a, b) => (b.median > a.median ? b : a));
    const ratios = summary(ours[test].map((rate, i) => rate / best.rounds[i]));
    return {test, infer: summary(ours[test]), llama_cpp: best, llama_cpp_settings: settings,
            ratio: summary(ours[test]).median / best.median, ratio_quartiles: ratios.quartiles};
  });
  const limits = (key) => quantile(machines.map((machine) => machine[key]), 0.5);
  return {file: basename(file), machine: {device: machines[0].device, read_bandwidth: limits("read_bandwidth"),
                                          int8_operations_per_second: limits("int8_operations_per_second")},
          disturbed, results};
}

function printTable({file, machine, disturbed: nDisturbed, results}, version) {
  const figure = ({median, quartiles: [low, high]}) =>
    `${median.toFixed(1)} (${low.toFixed(1)} .. ${high.toFixed(1)})`;
  console.log(`${file}, ${machine.device}; read bandwidth ${(machine.read_bandwidth / 1e9).toFixed(1)} GB/s, ` +
              `int8 ${(machine.int8_operations_per_second / 1e9).toFixed(0)} Gop/s (medians)`);
  console.log(`llama.cpp ${version.release} with ${version.kernels}, ${options.threads} threads, batch and ubatch ` +
              `${BATCH}, ${flags["no-mmap"] ? "no mmap" : "mmap"}\n${options.rounds} alternating rounds: median ` +
              "(quartiles) of tokens/s; ratio of the medians (quartiles of the rounds' ratios)\n");
  const rows = [["test", "infer", "llama.cpp", "flash attention", "ratio"]];
  const what = {prefill: `prompt of ${options.prompt}`, decode: `${options.tokens} tokens at ${options.depth}`,
                streams: `${options.streams} streams, ${options.streamTokens} each at ${options.depth}`};
  for (const {test, infer, llama_cpp: best, llama_cpp_settings: settings, ratio, ratio_quartiles} of results) {
    const [low, high] = ratio_quartiles;
    const others = settings.filter((setting) => setting !== best).map(({median}) => `, else ${median.toFixed(1)}`);
    rows.push([what[test], figure(infer), figure(best), (best.flash_attention ? "on" : "off") + others.join(""),
               `${ratio.toFixed(2)} (${low.toFixed(2)} .. ${high.toFixed(2)})`]);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd());
  if (nDisturbed > 0) console.log(`${nDisturbed} of the measurements were disturbed by other processes`);
  console.log();
}

const llama = await getLlama({gpu: false, build: "never", maxThreads: options.threads, logLevel: LlamaLogLevel.error});
const version = peerVersion(llama);
const measured = [];
for (const file of files) {
  measured.push(await measure(llama, file));
  if (!flags.json) printTable(measured.at(-1), version);
}
if (flags.json) {
  console.log(JSON.stringify({llama_cpp: version, threads: options.threads, batch: BATCH, rounds: options.rounds,
                              prompt: options.prompt, depth: options.depth, tokens: options.tokens,
                              streams: options.streams, stream_tokens: options.streamTokens, files: measured}));
}
process.exit();
