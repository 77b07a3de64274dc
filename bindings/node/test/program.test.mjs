// `npx switchboard-mcp` is the program: arguments, output, exit code and signals.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { folder, root } from './support/index.mjs';

const script = path.join(root, 'bin/switchboard.js');

test('the program runs, and its exit code is passed on', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--version']);
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  assert.match(stdout, new RegExp(`^switchboard ${version.replaceAll('.', '\\.')}`));
  const failed = await promisify(execFile)(process.execPath, [script, 'no-such-command']).catch((error) => error);
  assert.equal(failed.code, 2);
  assert.match(failed.stderr, /no-such-command/);
});

test('signals reach the program, and how it ended is passed on', async () => {
  const place = folder();
  const program = path.join(place, 'program');
  const write = (text) => {
    writeFileSync(program, `#!/bin/sh\n${text}`);
    chmodSync(program, 0o755);
  };
  const start = async () => {
    const child = spawn(process.execPath, [script], { env: { ...process.env, SWITCHBOARD_PROGRAM: program } });
    await once(createInterface({ input: child.stdout }), 'line');
    return child;
  };
  write("trap 'exit 7' TERM\necho ready\nwhile :; do read -r line; done\n");
  const handled = await start();
  handled.kill('SIGTERM');
  assert.deepEqual(await once(handled, 'exit'), [7, null]);
  write('echo ready\nkill -KILL $$\n');
  const killed = await start();
  assert.deepEqual(await once(killed, 'exit'), [null, 'SIGKILL']);
});

test('without a program for this machine, the script says so', async () => {
  const env = { ...process.env };
  delete env.SWITCHBOARD_PROGRAM;
  const failed = await promisify(execFile)(process.execPath, [script], { env }).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /no program for this machine/);
});

test('every package has the version of the workspace', () => {
  const workspace = readFileSync(path.join(root, '../../Cargo.toml'), 'utf8');
  const [, version] = workspace.match(/\[workspace\.package\]\nversion = "(.*)"/);
  const { version: own } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  assert.equal(own, version);
});
