// The test groups of JSON-Schema-Test-Suite (draft 4, as npm has it): each schema is either enforced, and then takes no
// instance that is invalid, or refused by name. As a program, it writes the table of both into the documentation:
//
//     INFER_SOURCE_DIR=$PWD INFER_BINARY=$PWD/build/infer build/peer/node build/peer/schema_suite.mjs
import {spawnSync} from "node:child_process";
import {mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {dirname, join, relative} from "node:path";
import {fileURLToPath} from "node:url";
import {root} from "./harness.mjs";

const page = new URL("docs/json-schema-suite.md", root);
// Draft 4 alone distinguishes 1.0 from an integer, and JSON.stringify() does not.
const leftOut = "optional/zeroTerminatedFloats";
const suite = join(dirname(createRequire(import.meta.url).resolve("json-schema-test-suite")), "tests", "draft4");

function files(folder) {
  return readdirSync(folder, {withFileTypes: true}).flatMap(
    (entry) => entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]).sort();
}

/** What a schema says about a part of the value; a reference is followed once per step. */
function part(schema, whole, key) {
  let one = schema;
  if (typeof one?.$ref === "string" && one.$ref.startsWith("#")) {
    one = one.$ref.slice(1).split("/").slice(1).reduce(
      (at, step) => at?.[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")], whole);
  }
  if (key === undefined) return one;
  if (typeof key === "number") return Array.isArray(one?.items) ? one.items[key] ?? one.additionalItems : one?.items;
  return Object.hasOwn(one?.properties ?? {}, key) ? one.properties[key] : one?.additionalProperties;
}

/** The value with its keys in the order in which they are generated: declared, required, others. */
function ordered(value, schema, whole) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item, i) => ordered(item, part(schema, whole, i), whole));
  const one = part(schema, whole);
  const first = [...Object.keys(one?.properties ?? {}), ...(Array.isArray(one?.required) ? one.required : [])];
  const keys = new Set([...first.filter((key) => Object.hasOwn(value, key)), ...Object.keys(value)]);
  return Object.fromEntries([...keys].map((key) => [key, ordered(value[key], part(schema, whole, key), whole)]));
}

/** "accept", "prefix" or "reject" of each text, or the reason why the schema is refused. */
export function check(schema, texts) {
  const folder = mkdtempSync(join(tmpdir(), "schema-"));
  try {
    const path = join(folder, "schema.json");
    writeFileSync(path, JSON.stringify(schema));
    const input = texts.map((text) => JSON.stringify({text})).join("\n");
    const done = spawnSync(process.env.INFER_BINARY, ["grammar", "--check", "--json-schema-file", path, "--jsonl"], {input});
    if (done.status === 1) return {refused: done.stderr.toString().trim()};
    if (done.status !== 0) throw new Error(`exit code ${done.status}: ${done.stderr}`);
    return {results: done.stdout.toString().trim().split("\n").map((line) => JSON.parse(line).result)};
  } finally {
    rmSync(folder, {recursive: true});
  }
}

/** Every group with `name`, `schema`, and either `refused` or the counts of its instances; `wrong` are those taken
 * although they are invalid. */
export function groups() {
  const all = files(suite).filter((file) => !file.includes(leftOut));
  return all.flatMap((file) => JSON.parse(readFileSync(file, "utf8")).map(({schema, tests}, i) => {
    const texts = tests.map(({data}) => JSON.stringify(ordered(data, schema, schema)));
    const {refused, results} = check(schema, texts);
    const group = {file: relative(suite, file).replace(/\.json$/, ""), number: i + 1, schema, refused, wrong: [],
                   valid: 0, taken: 0, invalid: 0, accepted: 0};
    for (const [t, {valid}] of refused === undefined ? tests.entries() : []) {
      const accepted = results[t] === "accept";
      if (valid) {
        group.valid += 1;
        group.taken += accepted;
      } else {
        group.invalid += 1;
        group.accepted += accepted;
        if (accepted) group.wrong.push(texts[t]);
      }
    }
    return group;
  }));
}

/** A refusal without the program's name and the like. */
function reason({refused}) {
  return refused.replace(/^.*?\[schema\] /s, "").replace(/[|<>]/g, "").replace(/\n.*/s, "");
}

/** The page of the documentation. */
export function table(all) {
  const enforced = all.filter(({refused}) => refused === undefined);
  const sum = (name) => enforced.reduce((n, group) => n + group[name], 0);
  const rows = [...new Set(all.map(({file}) => file))].map((file) => {
    const own = all.filter((group) => group.file === file);
    const taken = own.filter(({refused}) => refused === undefined).map(({number}) => number);
    const refused = own.filter((group) => group.refused !== undefined).map((group) => `${group.number}: ${reason(group)}`);
    return `| ${file} | ${taken.join(", ")} | ${refused.join("<br>")} |`;
  });
  return `# JSON-Schema-Test-Suite

What becomes of the ${all.length} groups of tests for draft 4 in the npm package \`json-schema-test-suite\` 0.0.10, by file and
number in the file. ${leftOut}, which later drafts contradict, is left out.

${enforced.length} schemas are enforced: of their ${sum("invalid")} invalid instances ${sum("accepted")} are accepted, and of their ${sum("valid")} valid ones ${sum("taken")}.
The others are refused, and the message says why. \`tests/peer/schema_suite.mjs\` writes this page, and \`make test-peer\`
checks it.

| File | Enforced | Refused |
| --- | --- | --- |
${rows.join("\n")}
`;
}

export const written = () => readFileSync(page, "utf8");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, table(groups()));
  console.log(`Wrote ${fileURLToPath(page)}.`);
}
