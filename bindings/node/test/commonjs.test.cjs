const assert = require('node:assert/strict');
const { test } = require('node:test');
const switchboard = require('switchboard-mcp');

test('require and import give the same module', async () => {
  const imported = await import('switchboard-mcp');
  const names = Object.keys(switchboard).sort();
  assert.deepEqual(Object.keys(imported).sort(), names);
  for (const name of names) assert.equal(imported[name], switchboard[name], name);
});

test('a host works from CommonJS', async () => {
  const { own } = await import('./support/index.mjs');
  const host = await switchboard.Host.fromServers({ own: own() });
  assert.equal((await host.call('own/echo', { text: 'required' })).text, 'required');
  await host.close();
});

test('a session works from CommonJS', async () => {
  const { folder, scriptedModel } = await import('./support/index.mjs');
  const model = await scriptedModel({ text: 'hello' });
  const agent = await switchboard.Agent.create(folder(), { env: model.env });
  assert.equal(String(await agent.session(folder()).send('Hello')), 'hello');
  await agent.close();
  model.close();
});
