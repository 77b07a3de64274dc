import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  CallResult,
  ClosedError,
  DeniedError,
  Host,
  InvalidArgumentsError,
  InvalidConfigurationError,
  NotFoundError,
  RefusedError,
  SwitchboardError,
  TimedOutError,
  UnavailableError,
} from 'switchboard-mcp';
import * as z from 'zod';
import { everything, files, folder, hold, own, reports } from './support/index.mjs';

describe('a host of reference servers', () => {
  const place = folder();
  writeFileSync(path.join(place, 'notes.txt'), 'remember the milk');
  let host;
  before(async () => {
    host = await Host.fromServers({ mcpServers: { files: files(place), everything } });
  });
  after(() => host.close());

  test('lists tools of all servers, or of one', async () => {
    const tools = await host.listTools();
    const names = tools.map((tool) => tool.name);
    assert.ok(names.includes('mcp__files__read_text_file'), String(names));
    assert.ok(names.includes('mcp__everything__get-sum'), String(names));
    const ofFiles = await host.listTools({ server: 'files' });
    assert.ok(ofFiles.length > 0 && ofFiles.every((tool) => tool.server === 'files'));
    const read = ofFiles.find((tool) => tool.tool === 'read_text_file');
    assert.equal(read.title, 'Read Text File');
    assert.match(read.description, /Read the complete contents/);
    assert.equal(read.inputSchema.properties.path.type, 'string');
    assert.equal(read.outputSchema.properties.content.type, 'string');
    assert.equal(read.definition.name, 'read_text_file');
    assert.equal(read.score, undefined);
    assert.equal(JSON.parse(JSON.stringify(read)).name, 'mcp__files__read_text_file');
  });

  test('calls a tool by either name', async () => {
    const result = await host.call('files/read_text_file', { path: path.join(place, 'notes.txt') });
    assert.ok(result instanceof CallResult);
    assert.equal(result.text, 'remember the milk');
    assert.equal(String(result), result.text);
    assert.deepEqual(result.content, [{ type: 'text', text: 'remember the milk' }]);
    assert.deepEqual(result.structured, { content: 'remember the milk' });
    assert.deepEqual([result.isError, result.server, result.tool], [false, 'files', 'read_text_file']);
    assert.ok(result.elapsed > 0);
    const sum = await host.call('mcp__everything__get-sum', { a: 19, b: 23 });
    assert.match(sum.text, /42/);
  });

  test('reports progress in order, before the result', async () => {
    const seen = [];
    const args = { duration: 0.2, steps: 4 };
    const options = { onProgress: ({ progress, total }) => seen.push([progress, total]) };
    await host.call('everything/trigger-long-running-operation', args, options);
    assert.deepEqual(seen, [[1, 4], [2, 4], [3, 4], [4, 4]]);
  });

  test('finds tools', async () => {
    const found = await host.search('sum of two numbers', { limit: 3 });
    assert.equal(found[0].name, 'mcp__everything__get-sum');
    assert.ok(found.length <= 3 && found[0].score > 0);
  });

  test('lists and reads resources', async () => {
    const resources = await host.resources();
    assert.ok(resources.length > 0 && resources.every(({ server }) => server === 'everything'));
    const { contents } = await host.read('everything', resources[0].uri);
    assert.equal(contents[0].uri, resources[0].uri);
    const templates = await host.resourceTemplates({ server: 'everything' });
    assert.ok(templates.some(({ uriTemplate }) => uriTemplate.includes('{')));
  });

  test('lists and gets prompts', async () => {
    const prompts = await host.prompts();
    const prompt = prompts.find(({ arguments: args }) => args?.some(({ required }) => required));
    const args = Object.fromEntries(prompt.arguments.map(({ name }) => [name, 'Paris']));
    const { messages } = await host.prompt(prompt.server, prompt.name, args);
    assert.match(JSON.stringify(messages), /Paris/);
  });

  test('has statuses with keys in camel case', () => {
    const status = host.status().find(({ name }) => name === 'files');
    assert.deepEqual([status.state, status.transport], ['connected', 'stdio']);
    assert.ok(status.startupMs > 0 && status.pid > 0 && status.tools > 0);
    assert.match(status.protocolVersion, /^20/);
  });

  test('gives tools in the forms of model providers', async () => {
    const [openai] = await host.openaiTools({ server: 'files' });
    assert.deepEqual(Object.keys(openai.function).sort(), ['description', 'name', 'parameters']);
    assert.equal(openai.function.parameters.type, 'object');
    const [responses] = await host.openaiTools({ server: 'files', responses: true });
    assert.deepEqual([responses.type, responses.name], ['function', openai.function.name]);
    const [anthropic] = await host.anthropicTools({ server: 'files' });
    assert.deepEqual([anthropic.name, anthropic.input_schema.type], [openai.function.name, 'object']);
    assert.equal((await host.anthropicTools()).length, (await host.listTools()).length);
  });

  test('gives tools for LangChain', async () => {
    const tools = await host.langchainTools();
    const sum = tools.find(({ name }) => name === 'mcp__everything__get-sum');
    assert.match(await sum.invoke({ a: 40, b: 2 }), /42/);
    const call = { id: '1', name: sum.name, args: { a: 1, b: 2 }, type: 'tool_call' };
    const message = await sum.invoke(call);
    assert.equal(message.tool_call_id, '1');
    assert.ok(message.artifact instanceof CallResult);
    const read = tools.find(({ name }) => name === 'mcp__files__read_text_file');
    await assert.rejects(read.invoke({ path: '/etc/passwd' }), /denied/i);
  });
});

test('a dead server does not fail the rest, and its error says where and why', async () => {
  const dead = { command: process.execPath, args: ['-e', 'console.error("no disk"); process.exit(3)'] };
  const host = await Host.fromServers({ dead, missing: { command: '/nonexistent/server' }, own: own() });
  try {
    const tools = await host.listTools();
    assert.ok(tools.length > 0 && tools.every(({ server }) => server === 'own'));
    assert.equal((await host.call('own/echo', { text: 'hello' })).text, 'hello');
    const error = await host.listTools({ server: 'missing' }).catch((error) => error);
    assert.ok(error instanceof UnavailableError && error instanceof SwitchboardError);
    assert.deepEqual([error.name, error.code, error.server, error.step], ['UnavailableError', 'unavailable', 'missing', 'connecting']);
    assert.ok(error.hint.length > 0);
    assert.match(error.cause.message, /does not exist/);
    const states = Object.fromEntries(host.status().map(({ name, state }) => [name, state]));
    assert.deepEqual(states, { dead: 'failed', missing: 'failed', own: 'connected' });
  } finally {
    await host.close();
  }
});

describe('calls', () => {
  let host;
  let heard;
  before(async () => {
    heard = await reports();
    host = await Host.fromServers({ own: own(heard.port) });
    await host.listTools();
    assert.match(await heard.line(), /^pid /);
  });
  after(async () => {
    await host.close();
    heard.close();
  });

  test('go to one process', async () => {
    const pids = new Set();
    for (let call = 0; call < 20; call += 1) pids.add((await host.call('own/pid')).text);
    assert.deepEqual([...pids], [String(host.status()[0].pid)]);
  });

  test('run 64 at a time, each with its own result', async () => {
    const numbers = Array.from({ length: 64 }, (_, number) => String(number));
    const results = await Promise.all(numbers.map((text) => host.call('own/echo', { text })));
    assert.deepEqual(results.map(({ text }) => text), numbers);
  });

  test('keep what the server sent', async () => {
    const result = await host.call('own/echo', { text: 'a' });
    assert.deepEqual(result.structured, { echoed: 'a' });
    assert.deepEqual(result.meta, { note: 'kept_as_sent' });
    assert.deepEqual(JSON.parse(result.raw), result.toJSON());
    const failed = await host.call('own/fail');
    assert.deepEqual([failed.isError, failed.text], [true, 'as told']);
  });

  test('of 10 MB are converted when they are looked at', async () => {
    const bytes = 10_000_000;
    const before = process.memoryUsage();
    const result = await host.call('own/big', { bytes });
    assert.equal(result.isError, false);
    const after = process.memoryUsage();
    assert.ok(after.heapUsed - before.heapUsed < bytes / 2, `${after.heapUsed - before.heapUsed} bytes`);
    assert.equal(result.text.length, bytes);
  });

  test('are cancelled at the server by a signal, and reject with its reason', async () => {
    const controller = new AbortController();
    const call = host.call('own/wait', {}, { signal: controller.signal });
    assert.equal(await heard.line(), 'waiting');
    controller.abort();
    await assert.rejects(call, { name: 'AbortError' });
    assert.equal(await heard.line(), 'cancelled');
    const reason = new Error('changed my mind');
    await assert.rejects(host.call('own/wait', {}, { signal: AbortSignal.abort(reason) }), reason);
  });

  test('are cancelled at the server when they time out', async () => {
    const call = host.call('own/wait', {}, { timeout: 50 });
    await assert.rejects(call, (error) => error instanceof TimedOutError && error.server === 'own');
    assert.equal(await heard.line(), 'waiting');
    assert.equal(await heard.line(), 'cancelled');
    const inAll = host.call('own/wait', {}, { totalTimeout: 50 });
    await assert.rejects(inAll, TimedOutError);
    assert.equal(await heard.line(), 'waiting');
    assert.equal(await heard.line(), 'cancelled');
  });

  test('fail as a tree of errors', async () => {
    const check = async (call, Class, code) => {
      const error = await call.catch((error) => error);
      assert.ok(error instanceof Class && error instanceof SwitchboardError, String(error));
      assert.deepEqual([error.name, error.code], [Class.name, code]);
    };
    await check(host.call('own/nothing'), NotFoundError, 'not_found');
    await check(host.listTools({ server: 'nobody' }), NotFoundError, 'not_found');
    await check(host.restart('nobody'), NotFoundError, 'not_found');
    await check(host.call('own/echo', { text: 7 }), InvalidArgumentsError, 'invalid_arguments');
    await check(host.call(7), InvalidArgumentsError, 'invalid_arguments');
    await check(host.call('own/echo', {}, { timeout: -1 }), InvalidArgumentsError, 'invalid_arguments');
    await check(host.call('own/refuse'), RefusedError, 'refused');
    await check(host.addServer('bad', {}), InvalidConfigurationError, 'invalid_configuration');
    await check(host.login('own'), InvalidArgumentsError, 'invalid_arguments');
    const refused = await host.call('own/refuse').catch((error) => error);
    assert.match(refused.cause.message, /refused by the server/);
  });
});

test('servers are added, disabled, restarted and removed', async () => {
  const host = await Host.create();
  try {
    assert.deepEqual(host.status(), []);
    assert.equal(await host.addServer('own', own()), 7);
    const { text: pid } = await host.call('own/pid');
    assert.equal(await host.restart('own'), 7);
    assert.notEqual((await host.call('own/pid')).text, pid);
    await host.disable('own');
    await assert.rejects(host.call('own/pid'), UnavailableError);
    await host.enable('own');
    assert.match((await host.call('own/pid')).text, /^\d+$/);
    assert.equal(await host.removeServer('own'), true);
    assert.equal(await host.removeServer('own'), false);
    await assert.rejects(host.call('own/pid'), NotFoundError);
    const failing = { command: process.execPath, args: ['-e', 'process.exit(1)'] };
    await assert.rejects(host.addServer('failing', failing), (error) => error.server === 'failing' && error.step !== undefined);
  } finally {
    await host.close();
  }
});

test('events are an async iterator that ends with its signal, with the loop, and with the host', async (context) => {
  // Waiting for events alone does not keep Node running.
  hold(context);
  const host = await Host.create();
  const seen = host.events();
  await host.addServer('own', own());
  await host.call('own/echo', { text: 'a' });
  const types = [];
  for await (const event of seen) {
    types.push(event.type);
    if (event.type === 'call_end') {
      assert.deepEqual([event.server, event.tool, event.isError], ['own', 'echo', false]);
      assert.ok(event.elapsedMs > 0);
      break;
    }
  }
  assert.ok(types.includes('state_changed') && types.includes('call_begin'), String(types));
  assert.deepEqual(await seen.next(), { done: true, value: undefined });

  const controller = new AbortController();
  const aborted = host.events({ signal: controller.signal }).next();
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });

  const open = host.events();
  const waiting = open.next();
  await open.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });

  await host.close();
  assert.throws(() => host.events(), ClosedError);
});

test('a closed host refuses, also in the middle of a call, and can be closed again', async () => {
  const heard = await reports();
  const host = await Host.fromServers({ own: own(heard.port) });
  const call = host.call('own/wait');
  assert.match(await heard.line(), /^pid /);
  assert.equal(await heard.line(), 'waiting');
  const failed = assert.rejects(call, SwitchboardError);
  await host[Symbol.asyncDispose]();
  await failed;
  await heard.ended();
  await host.close();
  await assert.rejects(host.listTools(), ClosedError);
  assert.throws(() => host.status(), ClosedError);
  assert.throws(() => new Host(), TypeError);
  heard.close();
});

test('servers ask the functions of the program', async () => {
  const asked = [];
  const host = await Host.fromServers({ everything }, {
    onElicitation(server, params, { signal }) {
      asked.push(['elicitation', server, typeof params.message, signal.aborted]);
      return { action: 'decline' };
    },
    async onSampling(server, params) {
      asked.push(['sampling', server, params.messages.length]);
      return { role: 'assistant', content: { type: 'text', text: 'sampled here' }, model: 'none' };
    },
    onRoots(server) {
      asked.push(['roots', server]);
      return { roots: [{ uri: 'file:///somewhere', name: 'somewhere' }] };
    },
  });
  try {
    assert.match((await host.call('everything/trigger-elicitation-request')).text, /declined/);
    const sampled = await host.call('everything/trigger-sampling-request', { prompt: 'hello', maxTokens: 10 });
    assert.match(sampled.text, /sampled here/);
    assert.match((await host.call('everything/get-roots-list')).text, /somewhere/);
    const kinds = asked.map(([kind, server]) => `${kind} of ${server}`);
    assert.deepEqual(new Set(kinds), new Set(['elicitation of everything', 'sampling of everything', 'roots of everything']));
    assert.deepEqual(asked.find(([kind]) => kind === 'elicitation').slice(2), ['string', false]);
  } finally {
    await host.close();
  }
});

test('approval is asked of the program', async () => {
  const config = folder();
  writeFileSync(path.join(config, 'rules.toml'), '[[permissions.rules]]\ntool = "mcp__own__*"\naction = "ask"\n');
  const questions = [];
  const answers = [true, false, 'session'];
  const options = {
    files: [path.join(config, 'rules.toml')],
    onApproval(question) {
      questions.push(question);
      return answers.shift();
    },
  };
  const host = await Host.fromServers({ own: own() }, options);
  try {
    assert.equal((await host.call('own/echo', { text: 'a' })).text, 'a');
    await assert.rejects(host.call('own/echo', { text: 'b' }), DeniedError);
    assert.equal((await host.call('own/echo', { text: 'c' })).text, 'c');
    assert.equal((await host.call('own/echo', { text: 'c' })).text, 'c');
    assert.equal(questions.length, 3);
    const [{ server, tool, arguments: args, offers }] = questions;
    assert.deepEqual([server, tool, args], ['own', 'echo', { text: 'a' }]);
    assert.ok(offers.length > 0);
  } finally {
    await host.close();
  }
});

describe('tools of the program', () => {
  let host;
  before(async () => {
    host = await Host.create();
  });
  after(() => host.close());

  test('have a JSON Schema', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] };
    host.tool('add', schema, ({ a, b }) => ({ sum: a + b }), { description: 'Adds two numbers' });
    const result = await host.call('local/add', { a: 1, b: 2 });
    assert.deepEqual(result.structured, { sum: 3 });
    await assert.rejects(host.call('local/add', { a: 'one' }), InvalidArgumentsError);
    const [tool] = await host.listTools({ server: 'local' });
    assert.deepEqual([tool.name, tool.description], ['mcp__local__add', 'Adds two numbers']);
  });

  test('have a schema of zod, with its defaults and checks', async () => {
    const schema = z.object({ name: z.string().refine((name) => name !== 'nobody', 'not nobody'), times: z.number().default(2) });
    host.tool('greet', schema, async ({ name, times }) => `hello ${name} `.repeat(times).trim());
    assert.equal((await host.call('local/greet', { name: 'Ada' })).text, 'hello Ada hello Ada');
    const failed = await host.call('local/greet', { name: 'nobody' });
    assert.deepEqual([failed.isError, failed.text], [true, 'name: not nobody']);
    const tools = await host.listTools({ server: 'local' });
    assert.deepEqual(tools.find(({ tool }) => tool === 'greet').inputSchema.required, ['name']);
  });

  test('have a schema of an older zod, or say that it cannot be used', async () => {
    const schema = z.object({ name: z.string() });
    const standard = { ...schema['~standard'], jsonSchema: undefined };
    const older = Object.create(schema, { '~standard': { value: standard }, toJSONSchema: { value: undefined } });
    host.tool('older', older, ({ name }) => name);
    assert.equal((await host.call('local/older', { name: 'Ada' })).text, 'Ada');
    const other = { '~standard': { version: 1, vendor: 'other', validate: (value) => ({ value }) } };
    assert.throws(() => host.tool('other', other, () => 1), /other cannot write this schema as JSON Schema/);
  });

  test('declare what they do, and are listed at once', async () => {
    const begun = performance.now();
    const listed = async (tool) => (await host.listTools({ server: 'local' })).find((found) => found.tool === tool);
    host.tool('find', null, () => 1, { title: 'Find it', readOnly: true, destructive: false, idempotent: true, openWorld: false });
    const find = await listed('find');
    assert.equal(find.title, 'Find it');
    assert.deepEqual(find.definition.annotations, {
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    });
    host.tool('delete', null, () => 1, { destructive: true });
    assert.deepEqual((await listed('delete')).definition.annotations, { destructiveHint: true });
    host.tool('plain', null, () => 1);
    const plain = await listed('plain');
    assert.ok(!('annotations' in plain.definition) && !('title' in plain.definition));
    for (const name of ['a', 'b', 'c']) {
      host.tool(name, null, () => 1);
      assert.ok(await listed(name));
    }
    // Change notifications would be rate limited: 100 ms, 200 ms, 400 ms, ...
    assert.ok(performance.now() - begun < 1_000, String(performance.now() - begun));
  });

  test('throw, return nothing, and are replaced', async () => {
    host.tool('odd', null, () => {
      throw new Error('as thrown');
    });
    const failed = await host.call('local/odd');
    assert.deepEqual([failed.isError, failed.text], [true, 'as thrown']);
    host.tool('odd', undefined, () => undefined);
    assert.equal((await host.call('local/odd')).text, '');
    host.tool('odd', undefined, () => 1n);
    assert.equal((await host.call('local/odd')).isError, true);
    assert.throws(() => host.tool('', null, () => 1), InvalidArgumentsError);
    assert.throws(() => host.tool('none', null), InvalidArgumentsError);
  });

  test('are told when the caller gives up', async (context) => {
    hold(context);
    const controller = new AbortController();
    const started = withResolvers();
    const aborted = withResolvers();
    host.tool('slow', null, (_, { signal }) => {
      signal.addEventListener('abort', aborted.resolve);
      started.resolve();
      return new Promise(() => {});
    });
    const call = host.call('local/slow', {}, { signal: controller.signal });
    await started.promise;
    controller.abort();
    await assert.rejects(call, { name: 'AbortError' });
    await aborted.promise;
  });
});

test('the configuration of a folder is read, and so are files', async () => {
  const place = folder();
  writeFileSync(path.join(place, 'servers.json'), JSON.stringify({ mcpServers: { own: own() } }));
  const host = await Host.fromConfig(place, { files: [path.join(place, 'servers.json')] });
  try {
    assert.equal((await host.call('own/echo', { text: 'read' })).text, 'read');
  } finally {
    await host.close();
  }
  await assert.rejects(Host.fromConfig(path.join(place, 'nowhere')), SwitchboardError);
});

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
