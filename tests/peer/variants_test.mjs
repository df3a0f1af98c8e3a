// Variants of the reference models, with other hyper-parameters (variants.py): llama.cpp and our engine compute the
// same distributions, or both refuse the file. INFER_VARIANTS says how many of each model; INFER_SEED draws others.
import {execFileSync, spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {ourDistributions} from "./distributions.mjs";
import {main, root, test} from "./harness.mjs";

const inSource = (path) => new URL(path, root).pathname;
const shared = join(process.env.INFER_SHARED ?? inSource("../shared"), "goldens/arch");
const models = existsSync(shared) ? shared : inSource("tests/data/arch");
const folder = mkdtempSync(join(tmpdir(), "infer-variants-"));

const lines = execFileSync("python3", [inSource("tests/peer/variants.py"), process.env.INFER_BINARY, models, folder,
                                       process.env.INFER_SEED ?? "1", process.env.INFER_VARIANTS ?? "1"],
                           {encoding: "utf8", maxBuffer: 1 << 28});
const variants = lines.trim().split("\n").map((line) => JSON.parse(line));

const WRONG_SHAPE = /tensor '(\S+)' has wrong shape; expected ([0-9, ]+), got ([0-9, ]+)/;
const SKIPPED_BY_US = /time_mix_v0/;  // so that variants.py does not learn its size
const elements = (shape) => shape.split(",").reduce((product, n) => product * Number(n), 1);

/** In a process of its own, since llama.cpp ends the process where it cannot compute a model; null if it refuses.
 * Throws if it wants a tensor of another size. */
function theirDistributions({path, tokens, refused, flash_attention: flash}) {
  const script = new URL("reference_logprobs.mjs", import.meta.url).pathname;
  const parameters = [script, path, tokens.join(), ...(flash ? ["flash"] : [])];
  const result = spawnSync(process.execPath, parameters, {encoding: "utf8", maxBuffer: 1 << 28});
  if (result.status === 0) return JSON.parse(result.stdout);
  const wrong = (result.stdout + result.stderr).match(WRONG_SHAPE);
  if (wrong && !refused && !SKIPPED_BY_US.test(wrong[1]) && elements(wrong[2]) !== elements(wrong[3])) {
    throw new Error(`llama.cpp says: ${wrong[0]}`);
  }
  return null;
}

function compare(variant) {
  const theirs = theirDistributions(variant);
  if (theirs && variant.refused) throw new Error(`llama.cpp computes it, but: ${variant.refused}`);
  if (!theirs || variant.refused) return 0;
  const ours = ourDistributions(variant.path, variant.tokens);
  const differences = theirs.map((entries, at) => Math.max(
    ...entries.map(([token, logprob]) => Math.abs(logprob - ours[at].get(token)))));
  const wrong = differences.findIndex((difference) => !(difference <= variant.limit));
  if (wrong >= 0) throw new Error(`log probabilities at ${wrong} differ by ${differences[wrong]}`);
  return 1;
}

let compared = 0;
for (const model of new Set(variants.map((variant) => variant.model))) {
  test(`variants of ${model}`, () => {
    for (const variant of variants.filter((other) => other.model === model)) {
      try {
        compared += compare(variant);
      } catch (error) {
        throw new Error(`${variant.name} ${JSON.stringify(variant.changes)}: ${error.message}`);
      }
    }
  });
}
test("llama.cpp computes most variants", () => {
  console.log(`${compared} of ${variants.length} variants compared`);
  if (compared < variants.length / 2) throw new Error(`only ${compared} of ${variants.length} variants were compared`);
});

await main();
rmSync(folder, {recursive: true});
