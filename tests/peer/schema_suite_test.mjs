// The groups of JSON-Schema-Test-Suite: no invalid instance is accepted, every refusal names the keyword and its place,
// the documentation's table is right, and what is generated under an enforced schema is valid by `ajv`.
import Ajv from "ajv";
import formats from "ajv-formats";
import {expectEqual, main, test} from "./harness.mjs";
import {check, groups, table, written} from "./schema_suite.mjs";
import {key, model, stop, url} from "./server.mjs";

const AT_ONCE = 16;
const ENDINGS = [["\"", 6], ["\"}", 6], ["}", 6], ["]", 6], [",", 2]]; // the tiny model ends little by itself

const all = groups();
const enforced = all.filter(({refused}) => refused === undefined);

test("no invalid instance is accepted", () => {
  const wrong = all.filter((group) => group.wrong.length > 0).map(({file, number, wrong: texts}) => `${file} ${number}: ${texts}`);
  if (wrong.length > 0 || enforced.length < 40) throw new Error(`${enforced.length} enforced; ${wrong.join("\n")}`);
});

test("refusals name the place and what is wrong", () => {
  const vague = all.filter(({refused}) => refused !== undefined && !/\[schema\] #.*: expected .+, found .+/.test(refused));
  expectEqual(vague.map(({file, number, refused}) => `${file} ${number}: ${refused}`), [], "messages without a place");
});

test("the page of the documentation", () => {
  if (table(all) !== written()) throw new Error("docs/json-schema-suite.md is out of date; run schema_suite.mjs");
});

async function generated(group) {
  const body = {model, prompt: "An example of the data: ", n: 4, seed: 5, max_tokens: 60, top_k: 0, logit_bias: ENDINGS,
                structured_outputs: {json: group.schema, disable_any_whitespace: true}};
  const ajv = new Ajv({strict: false});
  formats(ajv);
  const valid = ajv.compile(group.schema);
  let ended = 0;
  for (const temperature of [0, 1, 3]) {
    const reply = await fetch(`${url}/v1/completions`, {method: "POST", body: JSON.stringify({...body, temperature}),
                                                        headers: {Authorization: `Bearer ${key}`}});
    const json = await reply.json();
    if (reply.status !== 200) throw new Error(`${group.file} ${group.number}: ${json.error.message}`);
    for (const {text, finish_reason} of json.choices) {
      if (finish_reason === "stop") {
        ended += 1;
        if (!valid(JSON.parse(text))) throw new Error(`${group.file} ${group.number}: ${text}: ${ajv.errorsText(valid.errors)}`);
      } else if (!text.includes("\ufffd") && check(group.schema, [text]).results[0] === "reject") {
        throw new Error(`${group.file} ${group.number}: no beginning: ${text}`);
      }
    }
  }
  return ended;
}

test("what is generated is valid", async () => {
  const failures = [];
  let next = 0, ended = 0;
  await Promise.all(Array.from({length: AT_ONCE}, async () => {
    while (next < enforced.length) {
      const group = enforced[next];
      next += 1;
      try {
        const n = await generated(group); // before `ended` is read
        ended += n;
      } catch (error) {
        failures.push(error.message);
      }
    }
  }));
  console.log(`${enforced.length * 12} answers, ${ended} of them ended by themselves`);
  if (failures.length > 0 || ended < enforced.length) throw new Error(failures.join("\n"));
});

try {
  await main();
} finally {
  await stop();
}
