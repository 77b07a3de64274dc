// The TypeScript SDK's client against a server of ours: lists, calls, follows progress, cancels, answers a question.
//
//   node typescript_client.mjs legacy|auto http URL TOKEN
//   node typescript_client.mjs legacy|auto stdio PROGRAM [ARGUMENT...]
//
// Prints one line of JSON with what it saw, as python_client.py does. The packages lie in
// target/interop/npm/node_modules, so they are asked for by path: INTEROP_NODE_MODULES. Behind a gateway, names of tools
// and prompts begin with INTEROP_PREFIX.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const prefix = process.env.INTEROP_PREFIX ?? "";
const modules = process.env.INTEROP_NODE_MODULES;
if (!modules) throw new Error("INTEROP_NODE_MODULES is not set: run `cargo xtask test`");
const require = createRequire(path.join(modules, "resolve-from-here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [mode, kind, ...rest] = process.argv.slice(2);
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } },
      })
    : new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });

const client = new Client(
  { name: "typescript-sdk", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", async (request) => ({
  action: "accept",
  content: { username: "ada", email: request.params.message },
}));
await client.connect(transport);

const text = (result) => result.content[0].text;
const seen = {};
seen.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
seen.tools = (await client.listTools()).tools.length;
seen.text = text(await client.callTool({ name: prefix + "test_simple_text", arguments: {} }));
seen.resource = (await client.readResource({ uri: "test://static-text" })).contents[0].text;
seen.prompt = (await client.getPrompt({ name: prefix + "test_simple_prompt" })).messages[0].content.text;

seen.progress = [];
await client.callTool(
  { name: prefix + "test_tool_with_progress", arguments: {} },
  { onprogress: ({ progress }) => seen.progress.push(progress) },
);

seen.asked = text(await client.callTool({ name: prefix + "test_elicitation", arguments: { message: "Who?" } }));

const giveUp = new AbortController();
const waiting = client.callTool(
  { name: prefix + "test_wait", arguments: {} },
  { signal: giveUp.signal, onprogress: () => giveUp.abort() },
);
seen.cancelled = await waiting.then(() => false, () => true);
// Answered only when no call waits at the server any longer.
seen.ended = text(await client.callTool({ name: prefix + "test_all_ended", arguments: {} }));

const slow = client.callTool({ name: prefix + "test_tool_with_progress", arguments: {} }).then(() => "slow");
const quick = client.callTool({ name: prefix + "test_simple_text", arguments: {} }).then(() => "quick");
seen.order = [await Promise.race([slow, quick]), await slow];

await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
