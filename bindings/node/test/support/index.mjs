// What the tests share.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = path.join(root, 'node_modules/@modelcontextprotocol');

/** A folder that is removed with the test process. */
export function folder() {
  const made = realpathSync(mkdtempSync(path.join(tmpdir(), 'switchboard-node-')));
  process.on('exit', () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Keeps the configuration and the state of the user out of the tests. */
export const home = folder();
Object.assign(process.env, {
  HOME: home,
  XDG_CONFIG_HOME: path.join(home, 'config'),
  XDG_STATE_HOME: path.join(home, 'state'),
  XDG_DATA_HOME: path.join(home, 'data'),
  XDG_CACHE_HOME: path.join(home, 'cache'),
});
for (const name of ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'OPENAI_API_KEY', 'OPENAI_BASE_URL']) {
  delete process.env[name];
}

/** Keeps Node running until the test ends, where it waits for something that does not. */
export function hold(context) {
  const timer = setInterval(() => {}, 60_000);
  context.after(() => clearInterval(timer));
}

/** A folder in which this package and the reference servers are installed. */
export function projectFolder() {
  const made = folder();
  mkdirSync(path.join(made, 'node_modules'));
  symlinkSync(root, path.join(made, 'node_modules/switchboard-mcp'));
  for (const name of ['.bin', '@langchain', '@modelcontextprotocol', 'zod']) {
    symlinkSync(path.join(root, 'node_modules', name), path.join(made, 'node_modules', name));
  }
  return made;
}

/** The address of a reference server over HTTP, which ends with the test. */
export async function remoteServer(context) {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address();
  free.close();
  await once(free, 'close');
  const [file] = everything.args;
  const child = spawn(process.execPath, [file, 'streamableHttp'], { env: { ...process.env, PORT: String(port) } });
  context.after(() => child.kill());
  for await (const line of createInterface({ input: child.stderr })) if (/listening/.test(line)) break;
  child.stderr.resume();
  return `http://127.0.0.1:${port}/mcp`;
}

/** The reference servers. */
export const files = (folder) => ({
  command: process.execPath,
  args: [path.join(packages, 'server-filesystem/dist/index.js'), folder],
});
export const everything = { command: process.execPath, args: [path.join(packages, 'server-everything/dist/index.js')] };

/** The test's own server. */
export const own = (port = 0) => ({
  command: process.execPath,
  args: [path.join(root, 'test/support/server.mjs')],
  env: { REPORT_PORT: String(port) },
});

/** Receives the reports of test servers. `line()` waits for the next one, `ended()` until a server's process ends. */
export async function reports() {
  const lines = [];
  const waiting = [];
  let endings = 0;
  const ends = [];
  const listener = createServer((socket) => {
    socket.on('error', () => {});
    createInterface({ input: socket }).on('line', (line) => {
      const next = waiting.shift();
      if (next) next(line);
      else lines.push(line);
    });
    socket.on('close', () => {
      const next = ends.shift();
      if (next) next();
      else endings += 1;
    });
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: listener.address().port,
    line: () => (lines.length > 0 ? lines.shift() : new Promise((resolve) => waiting.push(resolve))),
    async ended() {
      if (endings > 0) endings -= 1;
      else await new Promise((resolve) => ends.push(resolve));
    },
    close: () => listener.close(),
  };
}

/** Runs a program in its own Node process. */
export async function run(source, { args = [], env = {}, cwd = root, onLine } = {}) {
  const parameters = ['--input-type=module', ...args, '--eval', source];
  const child = spawn(process.execPath, parameters, { cwd, env: { ...process.env, ...env } });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  if (onLine) createInterface({ input: child.stdout }).on('line', (line) => onLine(line, child));
  const [code, signal] = await once(child, 'close');
  return { code, signal, stdout, stderr };
}

/** A model that answers as scripted, over OpenAI's chat completions. Each step is `{ text }` or `{ calls }`. */
export async function scriptedModel(...steps) {
  const requests = [];
  const received = [];
  const server = createHttpServer(async (request, response) => {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }));
      return;
    }
    if (!request.url.endsWith('/chat/completions')) {
      response.writeHead(404).end();
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push(JSON.parse(body));
    received.shift()?.();
    const step = steps.shift() ?? { text: 'nothing is scripted' };
    if (step.never) return;
    response.setHeader('content-type', 'text/event-stream');
    const send = (data) => response.write(`data: ${data}\n\n`);
    const chunk = (delta, finish_reason = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      send(JSON.stringify({ id: '1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices }));
    };
    if (step.text) chunk({ role: 'assistant', content: step.text });
    const calls = (step.calls ?? []).map(({ name, args }, index) => ({
      index,
      id: `call_${requests.length}_${index}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }));
    if (calls.length > 0) chunk({ role: 'assistant', tool_calls: calls });
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop');
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    send(JSON.stringify({ id: '1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [], usage }));
    send('[DONE]');
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  return {
    url,
    env: { ...process.env, OPENAI_BASE_URL: url },
    requests,
    /** Waits for the next request. */
    request: () => new Promise((resolve) => received.push(resolve)),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
