// The examples, and those of the documentation, are run.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { native } from '../lib/bridge.js';
import { byCode } from '../lib/errors.js';
import { projectFolder, root, run, scriptedModel } from './support/index.mjs';

const documentation = readFileSync(path.join(root, '../../docs/node.md'), 'utf8');

/** Runs a program where the package and the servers are installed; returns what it prints. */
async function output(source, env = {}) {
  const cwd = projectFolder();
  writeFileSync(path.join(cwd, 'notes.txt'), 'remember the milk');
  const { code, stdout, stderr } = await run(source, { cwd, env });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

const example = (name) => readFileSync(path.join(root, `examples/${name}.mjs`), 'utf8');

test('quickstart', async () => {
  assert.match(await output(example('quickstart')), /^14 tools, such as mcp__files__\w+\n(.*\n)*\[FILE\] notes\.txt/);
});

test('own-tools', async () => {
  const printed = await output(example('own-tools'));
  assert.match(printed, /\{ city: 'Lisbon', days: 1, weather: 'sunny' \}/);
  assert.match(printed, /name: 'mcp__local__forecast'/);
});

test('langchain', async () => {
  assert.match(await output(example('langchain')), /42/);
});

test('agent', async (context) => {
  const model = await scriptedModel(
    { calls: [{ name: 'mcp__files__list_directory', args: { path: '.' } }] },
    { text: 'There are notes.' },
  );
  context.after(() => model.close());
  const printed = await output(example('agent'), { OPENAI_BASE_URL: model.url });
  assert.equal(printed, '14 tools\ncalls list_directory\nThere are notes.\n');
  assert.match(JSON.stringify(model.requests[1].messages), /\[FILE\] notes\.txt/);
});

const programs = [...documentation.matchAll(/```js\n([^]*?)```/g)].map(([, source]) => source);

for (const [index, source] of programs.entries()) {
  const title = source.split('\n').find((line) => line.trim() !== '');
  test(`docs/node.md, program ${index + 1}: ${title}`, async (context) => {
    const model = await scriptedModel({ text: 'Hello.' }, { text: 'Hello again.' }, { text: 'Hello once more.' });
    context.after(() => model.close());
    const expected = source.match(/\/\/ prints: (.*)/g) ?? [];
    const printed = await output(source, { OPENAI_BASE_URL: model.url });
    for (const line of expected) assert.ok(printed.includes(line.slice('// prints: '.length)), `${line}\n${printed}`);
  });
}

test('the documentation has programs, and a row for every error', () => {
  assert.ok(programs.length >= 5);
  const rows = Object.fromEntries([...documentation.matchAll(/^\| `(\w+Error)` \| `(\w+)` \|/gm)].map(([, name, code]) => [code, name]));
  const classes = Object.fromEntries(Object.entries(byCode).map(([code, Class]) => [code, Class.name]));
  assert.deepEqual(rows, classes);
  assert.deepEqual(native.Bridge.codes().sort(), Object.keys(classes).sort());
});
