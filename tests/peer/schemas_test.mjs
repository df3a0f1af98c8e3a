// What is generated under a schema is valid according to `ajv`: each schema of ../shared/goldens/schema that has to be
// supported, at several temperatures, by a trained model and by one with random weights. According to `infer grammar
// --check`, answers that reached their limit are beginnings of valid ones. The answers under some schemas
// (INFER_TEST_FULL=1: all) are the same when requested alone.
import {execFileSync} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import Ajv from "ajv/dist/2020.js";
import formats from "ajv-formats";
import {expectEqual, main, root, test} from "./harness.mjs";

const MODELS = {trained: await import("./server.mjs"), random: await import("./server.mjs?random")};

const file = new URL("../shared/goldens/schema/schemas.json", root).pathname;
const ROUNDS = 4; // answers for each schema and temperature
const AT_ONCE = 16;
const ALONE = process.env.INFER_TEST_FULL === "1" ? 1 : 8; // every so many schemas also alone
const SETTINGS = [[0, false], [1, false], [3, false], [0, true], [1, true], [3, true]]; // temperature, ends

// The tiny model tends to continue strings instead of ending them.
const ENDINGS = [["\"", 6], ["\"}", 6], ["}", 6], ["]", 6], [",", 2]];

async function answers({url, key, model}, schema, temperature, ends, more = {n: ROUNDS, seed: 11}) {
  const body = {model, prompt: "An example of the data: ", temperature, max_tokens: 120, top_k: 0, ...more,
                structured_outputs: {json: schema, disable_any_whitespace: ends}, logit_bias: ends ? ENDINGS : []};
  const reply = await fetch(`${url}/v1/completions`, {method: "POST", body: JSON.stringify(body),
                                                      headers: {Authorization: `Bearer ${key}`}});
  const json = await reply.json();
  if (reply.status !== 200) throw new Error(`${reply.status} ${json.error.message}`);
  return json.choices;
}

/** "accept", "prefix" or "reject" for each text. */
function relations(schema, texts) {
  const path = join(mkdtempSync(join(tmpdir(), "schema-")), "schema.json");
  writeFileSync(path, JSON.stringify(schema));
  const input = texts.map((text) => JSON.stringify({text})).join("\n");
  const out = execFileSync(process.env.INFER_BINARY, ["grammar", "--check", "--json-schema-file", path, "--jsonl"], {input});
  return out.toString().trim().split("\n").map((line) => JSON.parse(line).result);
}

async function check(server, {name, schema}) {
  const ajv = new Ajv({strict: false, validateFormats: true, allErrors: false});
  formats(ajv);
  const valid = ajv.compile(schema);
  let whole = 0;
  const texts = [];
  for (const [temperature, ends] of SETTINGS) {
    const choices = await answers(server, schema, temperature, ends);
    texts.push(choices.map(({text}) => text));
    const cut = choices.filter(({finish_reason}) => finish_reason === "length").map(({text}) => text);
    for (const {text, finish_reason} of choices) {
      if (finish_reason !== "stop") continue;
      whole += 1;
      if (!valid(JSON.parse(text))) throw new Error(`${name} at ${temperature}: ${text}: ${ajv.errorsText(valid.errors)}`);
    }
    // A cut within a character leaves U+FFFD, which no text can continue.
    const rest = cut.filter((text) => !text.includes("\ufffd"));
    const wrong = rest.length > 0 ? relations(schema, rest).findIndex((result) => result === "reject") : -1;
    if (wrong >= 0) throw new Error(`${name} at ${temperature}: no beginning: ${rest[wrong]}`);
  }
  return {whole, texts};
}

/** The answers one after the other, computed token by token. */
async function alone(server, {name, schema}, expected) {
  for (const [i, [temperature, ends]] of SETTINGS.entries()) {
    for (let c = 0; c < ROUNDS; c += 1) {
      const [one] = await answers(server, schema, temperature, ends, {n: 1, seed: 11 + c, "speculative.n_max": 0});
      expectEqual(one.text, expected[i][c], `${name} at ${temperature}, answer ${c}`);
    }
  }
}

if (existsSync(file)) {
  const schemas = JSON.parse(readFileSync(file, "utf8")).schemas.filter(({level}) => level === "must_support");
  for (const [kind, server] of Object.entries(MODELS)) {
    test(`${schemas.length} schemas, ${kind} weights`, async () => {
      const failures = [], found = new Map();
      let whole = 0, next = 0;
      await Promise.all(Array.from({length: AT_ONCE}, async () => {
        while (next < schemas.length) {
          const schema = schemas[next];
          next += 1;
          try {
            const checked = await check(server, schema);
            whole += checked.whole;
            found.set(schema, checked.texts);
          } catch (error) {
            failures.push(error.message);
          }
        }
      }));
      console.log(`${kind}: ${schemas.length * SETTINGS.length * ROUNDS} answers, ${whole} of them ended by themselves`);
      if (failures.length > 0 || whole < schemas.length) throw new Error(failures.join("\n"));
      for (let i = 0; i < schemas.length; i += ALONE) await alone(server, schemas[i], found.get(schemas[i]));
    });
  }
  try {
    await main();
  } finally {
    for (const server of Object.values(MODELS)) await server.stop();
  }
} else {
  for (const server of Object.values(MODELS)) await server.stop();
  console.log("schemas_test: 0 passed, 0 failed, 1 skipped");
}
