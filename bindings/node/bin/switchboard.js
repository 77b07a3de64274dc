#!/usr/bin/env node
'use strict';

/** Runs the program `switchboard` that comes with this package. */

const { spawn } = require('node:child_process');
const { program } = require('../lib/platform.js');

const file = program();
if (!file) {
  console.error('error: switchboard-mcp has no program for this machine; reinstall without --omit=optional');
  process.exit(1);
}
const child = spawn(file, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => {
    // A terminal has sent Ctrl-C to the program as well.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on('error', (error) => {
  console.error(`error: cannot start ${file}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (!signal) process.exit(code);
  // Ends as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
