import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, DeniedError, Host, InvalidArgumentsError, InvalidConfigurationError } from 'switchboard-mcp';
import { folder, hold, own, scriptedModel } from './support/index.mjs';

const hidden = { result: { content: [{ type: 'text', text: 'hidden' }] } };

test('hooks observe every call', async () => {
  const seen = [];
  const options = { onBeforeCall: async (call) => void seen.push(call), onAfterCall: (call) => void seen.push(call) };
  const host = await Host.fromServers({ own: own() }, options);
  try {
    const result = await host.call('own/echo', { text: 'a' });
    const [before, after] = seen;
    assert.equal(seen.length, 2);
    assert.deepEqual([before.event, after.event, before.call], ['before_call', 'after_call', after.call]);
    for (const { name, server, tool, arguments: args } of seen) {
      assert.deepEqual([name, server, tool, args], ['mcp__own__echo', 'own', 'echo', { text: 'a' }]);
    }
    assert.equal(before.result, null);
    assert.deepEqual(after.result, result.toJSON());
  } finally {
    await host.close();
  }
});

test('hooks change arguments and results, of the tools that they cover', async () => {
  const host = await Host.create({
    onBeforeCall: ({ arguments: { value } }) => ({ arguments: { value: value + 1 } }),
    onAfterCall: { 'mcp__local__secret|Bash': () => hidden },
  });
  try {
    host.tool('same', null, ({ value }) => value);
    host.tool('secret', null, ({ value }) => value);
    assert.equal((await host.call('local/same', { value: 1 })).text, '2');
    assert.equal((await host.call('local/secret', { value: 1 })).text, 'hidden');
  } finally {
    await host.close();
  }
});

test('a hook blocks when it says so and when it fails', async (context) => {
  // A hook that never answers does not keep Node running.
  hold(context);
  const hooks = [
    [() => ({ decision: 'block', reason: 'not now' }), /not now/],
    [() => { throw new Error('not today'); }, /failed: not today/],
    [() => new Promise(() => {}), /timed out after 0\.1 seconds/],
    [() => false, /returned something other than a JSON object/],
  ];
  for (const when of ['onBeforeCall', 'onAfterCall']) {
    for (const [hook, reason] of hooks) {
      let calls = 0;
      const host = await Host.create({ [when]: hook, hookTimeout: 100 });
      host.tool('work', null, () => (calls += 1));
      await assert.rejects(host.call('local/work'), (error) => {
        assert.ok(error instanceof DeniedError);
        assert.match(error.message, reason);
        return true;
      });
      assert.equal(calls, when === 'onBeforeCall' ? 0 : 1);
      await host.close();
    }
  }
});

test('a hook is told when its call is cancelled', async (context) => {
  hold(context);
  const controller = new AbortController();
  let aborted;
  const told = new Promise((resolve) => (aborted = resolve));
  const host = await Host.create({
    onBeforeCall(_, { signal }) {
      signal.addEventListener('abort', aborted);
      controller.abort();
      return new Promise(() => {});
    },
  });
  host.tool('work', null, () => 1);
  await assert.rejects(host.call('local/work', {}, { signal: controller.signal }), { name: 'AbortError' });
  await told;
  await host.close();
});

test('hooks that cannot be used are refused', async () => {
  await assert.rejects(Host.create({ onBeforeCall: { 'mcp__{a': () => {} } }), InvalidConfigurationError);
  await assert.rejects(Host.create({ onBeforeCall: { '*': 'block' } }), InvalidArgumentsError);
});

test('hooks inspect the calls of a model', async () => {
  const model = await scriptedModel(
    { calls: [{ name: 'mcp__local__double', args: { value: 4 } }] },
    { calls: [{ name: 'Bash', args: { command: 'ls' } }] },
    { text: 'It is 8.' },
  );
  const seen = [];
  const onBeforeCall = ({ name, session }) => {
    seen.push([name, session]);
    return name === 'Bash' ? { decision: 'block', reason: 'no commands here' } : { decision: 'allow' };
  };
  const place = folder();
  const agent = await Agent.create(place, { env: model.env, onBeforeCall });
  agent.host.tool('double', null, ({ value }) => value * 2);
  const session = agent.session(place);
  const reply = await session.send('What is twice 4?');
  // The first call needed no approval, since the hook allows it.
  assert.deepEqual(reply.toolCalls.map(({ isError }) => isError), [false, true]);
  assert.deepEqual(seen, [['mcp__local__double', session.id], ['Bash', session.id]]);
  assert.match(JSON.stringify(model.requests[2].messages), /no commands here/);
  await agent.close();
  model.close();
});
