// The official `openai` client in a web page of another origin talks to `infer serve --cors-origin`. Needs Chromium
// ($INFER_CHROMIUM, chromium or google-chrome); without one the test is skipped.
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {fileURLToPath} from "node:url";
import {expectEqual, main, root, test} from "./harness.mjs";

const names = [process.env.INFER_CHROMIUM, "chromium", "chromium-browser", "google-chrome"].filter(Boolean);
const browser = names.find((name) => spawnSync(name, ["--version"]).status === 0);
if (!browser) {
  console.log("browser_test: skipped: no Chromium (apt-get install chromium, or $INFER_CHROMIUM)");
  console.log("browser_test: 0 passed, 0 failed, 1 skipped");
  process.exit(0);
}

const MODEL = new URL("models/infer-demo-5m-q8_0.gguf", root).pathname;
const KEY = "peer-test-key";
const SECONDS = 60; // for a program to start, and for a page to say what it found
const MODULES = fileURLToPath(new URL("node_modules/", import.meta.url));

// What the page does, with what it finds as an object of plain values.
const SCRIPT = `
  import OpenAI from "openai";
  const found = {};
  try {
    const query = new URLSearchParams(location.search);
    const client = new OpenAI({baseURL: query.get("url") + "/v1", apiKey: query.get("key"), maxRetries: 0,
                               dangerouslyAllowBrowser: true});
    const request = {model: "any", messages: [{role: "user", content: "Where is Lindale?"}], temperature: 0,
                     max_tokens: 16};
    const whole = await client.chat.completions.create(request).withResponse();
    found.text = whole.data.choices[0].message.content;
    found.id = whole.response.headers.get("x-request-id");
    found.streamed = "";
    for await (const chunk of await client.chat.completions.create({...request, stream: true})) {
      found.streamed += chunk.choices[0]?.delta.content ?? "";
    }
    try {
      await client.chat.completions.create({...request, temperature: -1});
    } catch (error) {
      found.wrong = [error.status, error.param];
    }
  } catch (error) {
    found.error = String(error);
  }
  await fetch("/found", {method: "POST", body: JSON.stringify(found)});
`;
const PAGE = `<!doctype html><script type="importmap">{"imports": {"openai": "/modules/openai/index.mjs"}}</script>
<script type="module" src="/script.mjs"></script>`;

/** Serves the page and the client's modules; \`found\` is what the page says. */
function servePage() {
  let say;
  const found = new Promise((resolve) => { say = resolve; });
  const server = createServer((request, response) => {
    const {pathname} = new URL(request.url, "http://localhost");
    const send = (type, text) => response.writeHead(200, {"content-type": type}).end(text);
    if (pathname === "/") return send("text/html", PAGE);
    if (pathname === "/script.mjs") return send("text/javascript", SCRIPT);
    if (pathname === "/found") {
      let text = "";
      request.on("data", (data) => { text += data; });
      return request.on("end", () => { send("text/plain", ""); say(JSON.parse(text)); });
    }
    try {
      return send("text/javascript", readFileSync(join(MODULES, pathname.replace("/modules/", ""))));
    } catch {
      return response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve({server, found, port: server.address().port}));
  });
}

/** The address of a server started with these flags, and the way to end it. */
async function serveModel(...flags) {
  const process_ = spawn(process.env.INFER_BINARY, ["serve", "-m", MODEL, "--port", "0", "-t", "1", ...flags],
                         {env: {...process.env, INFER_API_KEY: KEY}, stdio: ["ignore", "inherit", "pipe"]});
  let log = "";
  process_.stderr.on("data", (text) => { log += text; });
  for (let i = 0; i < SECONDS * 20; i += 1) {
    const url = log.match(/url=(\S+)/)?.[1];
    if (url && log.includes(" ready ")) return {url, stop: () => process_.kill("SIGTERM")};
    await sleep(50);
  }
  process_.kill("SIGKILL");
  throw new Error(`the server was not ready after ${SECONDS} s\n${log}`);
}

/** What the page finds in a browser of its own. */
async function ask(...flags) {
  const page = await servePage();
  const model = await serveModel(...flags);
  const profile = mkdtempSync(join(tmpdir(), "infer-browser-"));
  const query = new URLSearchParams({url: model.url, key: KEY});
  const chromium = spawn(browser, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                   "--no-first-run", "--disable-background-networking", `--user-data-dir=${profile}`,
                                   `http://localhost:${page.port}/?${query}`], {stdio: "ignore", detached: true});
  const ended = new Promise((resolve) => { chromium.on("exit", resolve); });
  try {
    return await Promise.race([page.found, sleep(SECONDS * 1000, {error: `nothing found in ${SECONDS} s`}, {ref: false})]);
  } finally {
    process.kill(-chromium.pid, "SIGKILL"); // with the processes it started
    await ended;
    model.stop();
    page.server.close();
    page.server.closeAllConnections();
    rmSync(profile, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
  }
}

for (const origin of ["*", "localhost"]) {
  test(`a page with --cors-origin ${origin}`, async () => {
    const found = await ask("--cors-origin", origin);
    expectEqual(found.error ?? null, null, "error");
    expectEqual(found.text.length > 0, true, "some text");
    expectEqual(found.streamed, found.text, "streamed text");
    expectEqual(found.id.startsWith("req-"), true, "the id of the request");
    expectEqual(found.wrong, [400, "temperature"], "an error that can be read");
  });
}

test("a page without --cors-origin", async () => {
  const found = await ask();
  expectEqual(found.error?.includes("Connection error") ?? false, true, `an error, found ${JSON.stringify(found)}`);
});

await main();
