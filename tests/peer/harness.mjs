// What the peer tests share: a list of tests that run one after the other, and the counts at the end, as in tests/e2e.
import {basename} from "node:path";

const tests = [];

export const root = new URL(`${process.env.INFER_SOURCE_DIR}/`, "file://");

/** Adds a test; `run` throws when something does not hold. */
export function test(name, run) {
  tests.push({name, run});
}

export function expectEqual(found, expected, what) {
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  if (one !== other) throw new Error(`${what}: expected ${other}, found ${one}`);
}

/** Runs the tests named on the command line, else all; prints the counts and sets the exit code. */
export async function main() {
  const program = basename(process.argv[1], ".mjs");
  const names = process.argv.slice(2);
  const chosen = tests.filter(({name}) => names.length === 0 || names.includes(name));
  let failed = 0;
  for (const {name, run} of chosen) {
    try {
      await run();
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.message}`);
    }
  }
  console.log(`${program}: ${chosen.length - failed} passed, ${failed} failed, 0 skipped`);
  process.exitCode = failed > 0 || chosen.length === 0 ? 1 : 0;
}
