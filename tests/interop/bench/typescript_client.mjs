// The TypeScript SDK's client against a stdio server: `node typescript_client.mjs CALLS SERVER [ARGUMENT...]`.
//
// Prints one line of JSON with times in nanoseconds, as the other clients of this folder do:
//   connect     from start to a finished handshake
//   sequential  CALLS calls, one after the other: the median
//   concurrent  CALLS calls, 64 in flight, per call
//   list        one list of all tools, and how many there were
//   memory      the peak of this process, in bytes
//
// The packages lie in target/interop/npm/node_modules, so they are asked for by path: INTEROP_NODE_MODULES.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const modules = process.env.INTEROP_NODE_MODULES;
if (!modules) throw new Error("INTEROP_NODE_MODULES is not set: run `cargo xtask bench`");
const require = createRequire(path.join(modules, "resolve-from-here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [calls, command, ...args] = process.argv.slice(2);
const count = Number(calls);
const IN_FLIGHT = 64;

const now = () => process.hrtime.bigint();
const since = (start) => Number(now() - start);
const call = (client) => client.callTool({ name: "echo_0", arguments: { text: "hello" } });

const connecting = now();
const client = new Client({ name: "typescript-sdk", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const connect = since(connecting);

for (let warm = 0; warm < Math.min(count, 200); warm++) await call(client);

const times = [];
for (let done = 0; done < count; done++) {
  const one = now();
  await call(client);
  times.push(since(one));
}
const sequential = times.sort((left, right) => left - right)[Math.floor(count / 2)];

const many = now();
let started = 0;
const worker = async () => {
  while (started++ < count) await call(client);
};
await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
const concurrent = since(many) / count;

const listing = now();
const { tools } = await client.listTools();
const list = since(listing);

await client.close();
const memory = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ client: "typescript", connect, sequential, concurrent, list, tools: tools.length, memory }));
