// Makes the npm packages: `node package.mjs PLATFORM NATIVE PROGRAM LICENCES TARGET`. Prints the paths of the tarballs.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { moduleName, programName } from '../lib/platform.js';

const [platform, native, program, licences, target] = process.argv.slice(2);
const source = fileURLToPath(new URL('..', import.meta.url));
const stage = path.join(target, 'npm');
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));

rmSync(stage, { recursive: true, force: true });

/** Fills a folder and packs it. */
function pack(name, manifest, files) {
  const folder = path.join(stage, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const [from, to] of files) cpSync(from, path.join(folder, to), { recursive: true });
  for (const name of ['LICENSE-APACHE', 'LICENSE-MIT']) cpSync(path.join(licences, name), path.join(folder, name));
  if (name === platform) chmodSync(path.join(folder, 'bin', programName()), 0o755);
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const packed = execFileSync(npm, ['pack', '--json', '--pack-destination', target], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  const [{ filename }] = JSON.parse(packed);
  console.log(path.join(target, filename));
}

const { devDependencies, scripts, ...manifest } = read(path.join(source, 'package.json'));
const platforms = readdirSync(path.join(source, 'npm')).map((name) => read(path.join(source, 'npm', name, 'package.json')));
manifest.optionalDependencies = Object.fromEntries(platforms.map(({ name, version }) => [name, version]));
pack('switchboard-mcp', manifest, ['bin', 'lib', 'README.md'].map((name) => [path.join(source, name), name]));
pack(platform, read(path.join(source, 'npm', platform, 'package.json')), [
  [native, moduleName(platform)],
  [program, path.join('bin', programName())],
]);
