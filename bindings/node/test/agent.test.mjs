import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Agent, Host, ModelError, NotFoundError, Reply, Session, SwitchboardError } from 'switchboard-mcp';
import { folder, own, projectFolder, remoteServer, reports, run, scriptedModel } from './support/index.mjs';

const place = folder();
writeFileSync(path.join(place, 'milk.txt'), 'two litres');
writeFileSync(path.join(place, 'agent.hcl'), 'default_model = "openai/scripted"\n');

/** Allows calls without a question. */
const onApproval = () => true;

test('the program of the A3S document works, with this package', async (context) => {
  const project = projectFolder();
  writeFileSync(path.join(project, 'agent.hcl'), 'default_model = "openai/scripted"\n');
  const remote = await remoteServer(context);
  const model = await scriptedModel(
    { calls: [{ name: 'mcp__filesystem__list_allowed_directories', args: {} }] },
    { text: 'I may see /tmp.' },
  );
  context.after(() => model.close());
  // As in the document, but for the name of the package and the address; the end prints.
  const source = `
    import { Agent } from 'switchboard-mcp';

    const agent = await Agent.create('agent.hcl');
    const session = agent.session('.');

    // stdio server
    const toolCount = await session.addMcpServer(
      'filesystem',
      'stdio',
      'npx',
      ['-y', '@modelcontextprotocol/server-filesystem', '/tmp'],
    );
    console.log(\`Registered \${toolCount} tools\`);

    // Streamable HTTP server
    await session.addMcpServer(
      'remote',
      'streamable-http',
      undefined,
      undefined,
      '${remote}',
      { Authorization: \`Bearer \${process.env.API_TOKEN}\` },
    );

    const result = await session.send('List files in /tmp');
    console.log(String(result), result.toolCalls.length, result.failedServers.length);
  `;
  const env = { OPENAI_BASE_URL: model.url, API_TOKEN: 'secret' };
  const { code, stdout, stderr } = await run(source, { cwd: project, env });
  assert.equal(stderr, '');
  assert.equal(stdout, 'Registered 14 tools\nI may see /tmp. 1 0\n');
  assert.equal(code, 0);
  const result = model.requests[1].messages.find(({ role }) => role === 'tool');
  assert.match(JSON.stringify(result), /Allowed directories/);
});

test('a session sends, keeps its messages, counts its tokens, and is resumed', async () => {
  const model = await scriptedModel(
    { calls: [{ name: 'mcp__own__echo', args: { text: 'some_text' } }] },
    { text: 'It said some_text.' },
    { text: 'Welcome back.' },
  );
  const agent = await Agent.create(place, { env: model.env, onApproval, servers: { own: own() } });
  try {
    assert.ok(agent.host instanceof Host);
    const session = agent.session(place);
    assert.ok(session instanceof Session);
    assert.equal(session.workspace, place);
    const reply = await session.send('Say it');
    assert.ok(reply instanceof Reply);
    assert.deepEqual([String(reply), reply.response, reply.reason], ['It said some_text.', 'It said some_text.', 'done']);
    assert.deepEqual(reply.toolCalls.map(({ name, arguments: args, isError }) => [name, args, isError]), [
      ['mcp__own__echo', { text: 'some_text' }, false],
    ]);
    assert.deepEqual([reply.sessionId, reply.failedServers], [session.id, []]);
    const usage = await session.usage();
    assert.deepEqual([usage.input, usage.output, usage.cacheRead], [20, 10, 0]);
    const messages = await session.messages();
    assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'user', 'assistant']);
    const [stored] = await agent.sessions();
    assert.deepEqual([stored.id, stored.workspace], [session.id, place]);
    const resumed = await agent.resume(session.id);
    assert.equal(String(await resumed.send('Hello again')), 'Welcome back.');
    assert.equal(await agent.delete(session.id), true);
    assert.equal(await agent.delete(session.id), false);
    await assert.rejects(agent.resume(session.id), SwitchboardError);
  } finally {
    await agent[Symbol.asyncDispose]();
    model.close();
  }
});

test('a turn streams its events, the last with the reply', async () => {
  const model = await scriptedModel({ calls: [{ name: 'mcp__own__echo', args: { text: 'x' } }] }, { text: 'done' });
  const agent = await Agent.create(place, { env: model.env, onApproval, servers: { own: own() }, instructions: 'Be brief.' });
  const events = [];
  for await (const event of agent.session(place).stream('Go')) events.push(event);
  const types = events.map(({ type }) => type);
  for (const type of ['started', 'call_begins', 'call_ends', 'text', 'usage', 'ended']) assert.ok(types.includes(type), String(types));
  assert.deepEqual(events.find(({ type }) => type === 'call_begins').arguments, { text: 'x' });
  assert.equal(events.find(({ type }) => type === 'call_ends').isError, false);
  assert.equal(events.at(-1).response, 'done');
  assert.match(JSON.stringify(model.requests[0].messages), /Be brief\./);
  await agent.close();
  model.close();
});

test('a turn is interrupted by a signal, by interrupt() and by leaving its loop, down to the server', async () => {
  const heard = await reports();
  const wait = { calls: [{ name: 'mcp__own__wait', args: {} }] };
  const model = await scriptedModel(wait, wait, wait, { text: 'still here' });
  const agent = await Agent.create(place, { env: model.env, onApproval, servers: { own: own(heard.port) } });
  const session = agent.session(place);

  const controller = new AbortController();
  const sent = session.send('Wait', { signal: controller.signal });
  assert.match(await heard.line(), /^pid/);
  assert.equal(await heard.line(), 'waiting');
  controller.abort();
  await assert.rejects(sent, { name: 'AbortError' });
  assert.equal(await heard.line(), 'cancelled');

  const interrupted = session.send('Wait');
  assert.equal(await heard.line(), 'waiting');
  session.interrupt();
  await assert.rejects(interrupted, { code: 'cancelled' });
  assert.equal(await heard.line(), 'cancelled');

  for await (const event of session.stream('Wait')) {
    if (event.type === 'call_begins') {
      assert.equal(await heard.line(), 'waiting');
      break;
    }
  }
  assert.equal(await heard.line(), 'cancelled');

  assert.equal(String(await session.send('Still there?')), 'still here');
  await agent.close();
  heard.close();
  model.close();
});

test('servers are added to a session by entry as well', async () => {
  const model = await scriptedModel();
  const agent = await Agent.create(place, { env: model.env });
  const session = agent.session(place);
  assert.equal(await session.addMcpServer('own', own()), 7);
  assert.equal((await session.host.call('own/echo', { text: 'a' })).text, 'a');
  await assert.rejects(session.addMcpServer('bad', 'stdio', '/nonexistent/server'), { server: 'bad', step: 'connecting' });
  await assert.rejects(session.host.call('own/nothing'), NotFoundError);
  await agent.close();
  model.close();
});

test('tools of the program are tools of the agent, and budgets end a turn', async () => {
  const add = { calls: [{ name: 'mcp__local__add', args: { a: 20, b: 22 } }] };
  const model = await scriptedModel(add, { text: '42' }, add, add, add);
  const agent = await Agent.create(place, { env: model.env, onApproval, maxRequests: 2 });
  const schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } };
  agent.host.tool('add', schema, ({ a, b }) => a + b);
  const session = agent.session(place);
  assert.equal(String(await session.send('Add')), '42');
  const result = model.requests[1].messages.find(({ role }) => role === 'tool');
  assert.match(JSON.stringify(result), /42/);
  assert.equal((await session.send('Add for ever')).reason, 'turn_budget');
  await agent.close();
  model.close();
});

test('a budget of tokens ends a turn, and a budget is a number', async () => {
  const again = { calls: [{ name: 'mcp__local__again', args: {} }] };
  const model = await scriptedModel(again, again, again, again);
  const agent = await Agent.create(place, { env: model.env, onApproval, maxTokens: 20 });
  agent.host.tool('again', null, () => 'again');
  assert.equal((await agent.session(place).send('Go on')).reason, 'token_budget');
  assert.equal(model.requests.length, 2);
  await agent.close();
  for (const budget of [{ maxTokens: -1 }, { maxTokens: 1.5 }, { maxRequests: '3' }, { maxRequests: 2 ** 32 }]) {
    await assert.rejects(Agent.create(place, { env: model.env, ...budget }), { code: 'invalid_arguments' });
  }
  const large = await Agent.create(place, { env: model.env, maxTokens: 2 ** 33 });
  await large.close();
  model.close();
});

test('sub-agents share the tools, the hooks and the tokens of a turn', async () => {
  const model = await scriptedModel(
    { calls: [{ name: 'Agent', args: { prompt: 'Double 4' } }] },
    { calls: [{ name: 'mcp__local__double', args: { value: 4 } }] },
    { text: 'It is 8.' },
    { text: 'The answer is 8.' },
  );
  const seen = [];
  const onBeforeCall = ({ name }) => void seen.push(name);
  const agent = await Agent.create(place, { env: model.env, onApproval, onBeforeCall });
  agent.host.tool('double', null, ({ value }) => value * 2);
  const events = [];
  for await (const event of agent.session(place).stream('What is twice 4?')) events.push(event);
  const begun = Object.fromEntries(events.filter(({ type }) => type === 'call_begins').map((event) => [event.tool, event]));
  assert.equal(begun.Agent.parent, undefined);
  assert.equal(begun.double.parent, begun.Agent.id);
  assert.deepEqual(seen, ['Agent', 'mcp__local__double']);
  const { response, usage } = events.at(-1);
  assert.deepEqual([response, usage.input + usage.output], ['The answer is 8.', 60]);
  assert.doesNotMatch(JSON.stringify(model.requests[1].messages), /What is twice 4/);
  await agent.close();
  model.close();
});

test('a session is resumed by another agent, and compacted', async () => {
  const model = await scriptedModel(
    { text: 'Hello.' },
    { text: 'Welcome back.' },
    { text: 'They greeted each other.' },
    { text: 'Yes.' },
  );
  const first = await Agent.create(place, { env: model.env });
  const session = first.session(place);
  await session.send('Remember the word heron');
  await first.close();
  const second = await Agent.create(place, { env: model.env });
  const resumed = await second.resume(session.id);
  assert.deepEqual([resumed.id, resumed.workspace], [session.id, place]);
  assert.equal(String(await resumed.send('Hello again')), 'Welcome back.');
  assert.match(JSON.stringify(model.requests[1].messages), /heron/);
  await resumed.compact();
  assert.equal(String(await resumed.send('Do you remember?')), 'Yes.');
  assert.match(JSON.stringify(model.requests[3].messages), /They greeted each other\./);
  await second.close();
  model.close();
});

test('calls of the model are approved by the program', async () => {
  const model = await scriptedModel({ calls: [{ name: 'mcp__own__echo', args: { text: 'x' } }] }, { text: 'denied, then' });
  const questions = [];
  const onApproval = (question) => void questions.push(question.tool);
  const agent = await Agent.create(place, { env: model.env, onApproval, servers: { own: own() } });
  const reply = await agent.session(place).send('Go');
  assert.deepEqual([questions, reply.toolCalls[0].isError], [['echo'], true]);
  await agent.close();
  model.close();
});

test('without a model, an agent says what to set', async () => {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ANTHROPIC|OPENAI)_/.test(name)));
  const error = await Agent.create(place, { env }).catch((error) => error);
  assert.ok(error instanceof ModelError);
  assert.match(error.hint, /ANTHROPIC_API_KEY/);
  await assert.rejects(Agent.create(path.join(place, 'nowhere.hcl'), { env }), { code: 'invalid_arguments' });
});
