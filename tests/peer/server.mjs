// A running `infer serve` for the peer tests: importing this starts it, with a key, on a free port of 127.0.0.1.
// "./server.mjs?tools" has a chat template that shows tools, "./server.mjs?random" a model with random weights.
import {spawn} from "node:child_process";
import {setTimeout as sleep} from "node:timers/promises";
import {root} from "./harness.mjs";

const SECONDS = 60; // for the server to start, and for anything else that is waited for

export const key = "peer-test-key";
const random = import.meta.url.endsWith("?random");
export const model = random ? "bpe" : "infer-demo-5m-q8_0";

const file = new URL(random ? "tests/data/bpe.gguf" : `models/${model}.gguf`, root).pathname;
const template = import.meta.url.endsWith("?tools") ? ["--chat-template", new URL("tests/data/tools.jinja", root).pathname]
                                                   : [];
const server = spawn(process.env.INFER_BINARY,
                     ["serve", "-m", file, "--port", "0", "-t", "1", ...template],
                     {env: {...process.env, INFER_API_KEY: key}, stdio: ["ignore", "inherit", "pipe"]});
let log = "";
server.stderr.on("data", (text) => { log += text; });
const ended = new Promise((resolve) => { server.on("exit", resolve); });

/** Waits until `ready` returns something. */
export async function until(ready, what) {
  for (let i = 0; i < SECONDS * 20; i += 1) {
    const value = await ready();
    if (value) return value;
    await sleep(50);
  }
  throw new Error(`${what}: not within ${SECONDS} s\n${log}`);
}

export const url = await until(() => log.match(/url=(\S+)/)?.[1], "the server's address");
await until(async () => (await fetch(`${url}/health`)).ok, "a server that is ready");

/** A number of /metrics. */
export async function metric(name) {
  const text = await (await fetch(`${url}/metrics`, {headers: {Authorization: `Bearer ${key}`}})).text();
  return Number(text.match(new RegExp(`^infer_${name} (\\S+)$`, "m"))[1]);
}

/** The error that a call ends with. */
export async function errorOf(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error, found none");
}

/** Ends the server, which must end well. */
export async function stop() {
  server.kill("SIGTERM");
  if (await ended !== 0) {
    console.log(`The server ended badly:\n${log}`);
    process.exitCode = 1;
  }
}
