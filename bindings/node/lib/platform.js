'use strict';

/**
 * Finds the native module and the program for this machine: where a variable says, beside this file, or in the package
 * of the platform, which npm installs along with this one.
 */

const { existsSync } = require('node:fs');
const path = require('node:path');

/** The names of the platform packages that could fit, without `switchboard-mcp-`. On Linux the C library decides. */
function platforms() {
  const { platform, arch } = process;
  if (platform === 'linux') return [`linux-${arch}-gnu`, `linux-${arch}-musl`];
  if (platform === 'win32') return [`win32-${arch}-msvc`];
  return [`${platform}-${arch}`];
}

/** The name of the native module's file; glibc is the default of Linux, as MSVC is of Windows. */
function moduleName(platform) {
  return `switchboard.${platform.replace(/-(gnu|msvc)$/, '')}.node`;
}

function programName() {
  return process.platform === 'win32' ? 'switchboard.exe' : 'switchboard';
}

function* folders() {
  for (const platform of platforms()) {
    yield { platform, folder: __dirname };
    try {
      const manifest = require.resolve(`switchboard-mcp-${platform}/package.json`);
      yield { platform, folder: path.dirname(manifest) };
    } catch {
      // Not installed: not the package of this machine.
    }
  }
}

function load(file) {
  const loaded = { exports: {} };
  process.dlopen(loaded, file);
  return loaded.exports;
}

/** Loads the native module. */
function native() {
  const given = process.env.SWITCHBOARD_NATIVE;
  if (given) return load(path.resolve(given));
  const causes = [];
  for (const { platform, folder } of folders()) {
    const file = path.join(folder, moduleName(platform));
    if (!existsSync(file)) continue;
    try {
      return load(file);
    } catch (error) {
      causes.push(error);
    }
  }
  const names = platforms().map((platform) => `switchboard-mcp-${platform}`).join(' or ');
  throw new Error(
    causes.length > 0
      ? 'cannot load the native module of switchboard-mcp'
      : `switchboard-mcp has no native module for this machine: install the package ${names}, `
        + 'or reinstall without --omit=optional',
    { cause: causes[0] },
  );
}

/** The path of the program `switchboard`, or `undefined`. */
function program() {
  const given = process.env.SWITCHBOARD_PROGRAM;
  if (given) return path.resolve(given);
  for (const { folder } of folders()) {
    const file = path.join(folder, 'bin', programName());
    if (existsSync(file)) return file;
  }
  return undefined;
}

module.exports = { native, program, platforms, moduleName, programName };
