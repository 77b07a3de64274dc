// When Node exits, when a thread ends, when a host is collected: no process stays, and none hangs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import bridge from '../lib/bridge.js';
import { own, reports, run } from './support/index.mjs';

const { start } = bridge;

/** A program that opens a host of one test server, then does something. */
const program = (port, rest) => `
  import { Host } from 'switchboard-mcp';
  const options = {
    onElicitation: () => ({ action: 'decline' }),
    onSampling: () => { throw new Error('no'); },
    onRoots: () => ({ roots: [] }),
    onApproval: () => true,
  };
  const host = await Host.fromServers({ own: ${JSON.stringify(own(port))} }, options);
  host.tool('mine', null, () => host.status());
  ${rest}
`;

/** Runs the program, which must exit by itself and without output, and waits until its server has ended. */
async function exits(rest, expected = { code: 0, signal: null, stdout: '', stderr: '' }) {
  const heard = await reports();
  try {
    assert.deepEqual(await run(program(heard.port, rest)), expected);
    await heard.ended();
  } finally {
    heard.close();
  }
}

// napi-rs #1732: a threadsafe function keeps the event loop alive.
test('Node exits with an open host that has handlers and tools', () => exits(`await host.call('own/pid');`));

test('Node exits while an iterator waits for events', () =>
  exits(`
    await host.call('own/pid');
    (async () => { for await (const event of host.events()) void event; })();
  `));

test('Node exits after the host was closed', () =>
  exits(`
    await host.call('own/pid');
    const events = host.events();
    await host.close();
  `));

test('Node does not exit while a call is under way', () =>
  exits(
    `
      await host.listTools();
      host.call('own/echo', { text: 'answered' }).then(({ text }) => console.log(text));
    `,
    { code: 0, signal: null, stdout: 'answered\n', stderr: '' },
  ));

test('process.exit in the middle of a call ends the server', () =>
  exits(
    `
      host.call('own/wait');
      await host.call('own/pid');
      process.exit(7);
    `,
    { code: 7, signal: null, stdout: '', stderr: '' },
  ));

test('an error of the program ends the server', async () => {
  const heard = await reports();
  const { code, stderr } = await run(program(heard.port, `await host.call('own/pid'); throw new Error('a bug');`));
  assert.equal(code, 1);
  assert.match(stderr, /a bug/);
  await heard.ended();
  heard.close();
});

test('calls that end at once let the event loop turn', async () => {
  let turned = false;
  setImmediate(() => (turned = true));
  const deadline = Date.now() + 30_000;
  while (!turned) {
    assert.ok(Date.now() < deadline, 'the event loop does not turn');
    assert.equal(await start(undefined, (id) => [0, id, 'value']), 'value');
  }
});

test('an error of a function keeps no result back', () =>
  exits(
    `
      process.on('uncaughtException', ({ message }) => console.log(message));
      const onProgress = ({ progress }) => { throw new Error('step ' + progress); };
      const [steps, echo] = await Promise.all([host.call('own/steps', {}, { onProgress }), host.call('own/echo', { text: 'heard' })]);
      console.log(steps.text, echo.text);
    `,
    { code: 0, signal: null, stdout: 'step 1\nstep 2\ndone heard\n', stderr: '' },
  ));

test('SIGKILL leaves no server behind', async () => {
  const heard = await reports();
  const source = program(heard.port, `await host.call('own/pid'); console.log('ready'); await host.call('own/wait');`);
  const { signal } = await run(source, { onLine: (_, child) => child.kill('SIGKILL') });
  assert.equal(signal, 'SIGKILL');
  await heard.ended();
  heard.close();
});

test('a host that is collected is closed, although its functions refer to it', async () => {
  const heard = await reports();
  const source = `
    import { Host } from 'switchboard-mcp';
    import { createServer } from 'node:net';
    const hold = setInterval(() => {}, 60_000);
    process.stdin.on('end', () => clearInterval(hold)).resume();
    async function forget() {
      let host;
      const onApproval = () => host.status() && true;
      host = await Host.fromServers({ own: ${JSON.stringify(own(heard.port))} }, { onApproval });
      host.tool('mine', null, () => host.status());
      await host.call('own/pid');
    }
    await forget();
    // The frames of what is awaited are gone after a turn of the event loop.
    await new Promise(setImmediate);
    gc();
    console.log('collected');
  `;
  const ended = run(source, {
    args: ['--expose-gc'],
    async onLine(line, child) {
      assert.equal(line, 'collected');
      await heard.ended();
      child.stdin.end();
    },
  });
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, '']);
  heard.close();
});

/** Runs a program in a worker. */
function worker(source) {
  const started = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), { env: { ...process.env } });
  const ended = new Promise((resolve, reject) => started.on('exit', resolve).on('error', reject));
  return { started, ended };
}

// A module from a data: URL cannot import by name.
const inWorker = (port, rest) =>
  program(port, rest).replace("'switchboard-mcp'", JSON.stringify(import.meta.resolve('switchboard-mcp')));

test('a worker that ends closes its host', async () => {
  const heard = await reports();
  const { ended } = worker(inWorker(heard.port, `await host.call('own/pid');`));
  assert.equal(await ended, 0);
  await heard.ended();
  heard.close();
});

test('a worker can be terminated in the middle of calls, and others go on', async () => {
  const heard = await reports();
  const others = await reports();
  const source = inWorker(heard.port, `
    for (let call = 0; call < 8; call += 1) void host.call('own/wait');
    for await (const event of host.events()) void event;
  `);
  const other = worker(inWorker(others.port, `
    const { parentPort } = await import('node:worker_threads');
    parentPort.once('message', async () => { parentPort.postMessage((await host.call('own/echo', { text: 'alive' })).text); });
    await host.call('own/pid');
    parentPort.postMessage('ready');
  `));
  const message = () => new Promise((resolve) => other.started.once('message', resolve));
  assert.equal(await message(), 'ready');
  const { started } = worker(source);
  assert.match(await heard.line(), /^pid/);
  for (let call = 0; call < 8; call += 1) assert.equal(await heard.line(), 'waiting');
  await started.terminate();
  await heard.ended();
  const answer = message();
  other.started.postMessage('go on');
  assert.equal(await answer, 'alive');
  assert.equal(await other.ended, 0);
  await others.ended();
  heard.close();
  others.close();
});

test('workers come and go while hosts open', async () => {
  for (let round = 0; round < 5; round += 1) {
    const source = inWorker(0, '');
    const { started } = worker(source);
    await new Promise((resolve) => started.once('online', resolve));
    await started.terminate();
  }
});
