// The declarations: programs compile against them, and they declare what the module has.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import * as switchboard from 'switchboard-mcp';
import ts from 'typescript';
import { byCode } from '../lib/errors.js';
import { asyncDispose } from '../lib/stream.js';
import { root } from './support/index.mjs';

test('programs and examples compile in strict mode', async () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const compiled = promisify(execFile)(process.execPath, [tsc, '-p', path.join(root, 'test/tsconfig.json')], { cwd: root });
  const { stdout } = await compiled.catch((error) => error);
  assert.equal(stdout, '');
});

const file = path.join(root, 'lib/index.d.ts');
const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
const declared = new Map(source.statements.filter(ts.isClassDeclaration).map((node) => [node.name.text, node]));

/** Fields that instances have of their own, not from their class. */
const fields = {
  SwitchboardError: ['code', 'hint', 'server', 'step'],
  Reply: ['failedServers', 'reason', 'response', 'sessionId', 'toolCalls', 'usage'],
};

const shown = (name) => (name === asyncDispose ? '[Symbol.asyncDispose]' : typeof name === 'symbol' ? undefined : name);

test('the declarations have every class of the module, and no other', () => {
  assert.deepEqual([...declared.keys()].sort(), Object.keys(switchboard).sort());
});

for (const [name, node] of declared) {
  test(`the declaration of ${name} has the members of the class, and no other`, () => {
    const members = node.members.filter((member) => !ts.isConstructorDeclaration(member));
    const names = (isStatic) => {
      const of = members.filter((member) => Boolean(member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)) === isStatic);
      return [...new Set(of.map((member) => member.name.getText()))].sort();
    };
    const Class = switchboard[name];
    const inherited = Class.prototype instanceof Error ? ['constructor', 'name'] : ['constructor'];
    const methods = Reflect.ownKeys(Class.prototype).map(shown).filter((member) => member && !inherited.includes(member));
    assert.deepEqual(names(false), [...methods, ...(fields[name] ?? [])].sort());
    const statics = Object.getOwnPropertyNames(Class).filter((member) => !['length', 'name', 'prototype'].includes(member));
    assert.deepEqual(names(true), statics.sort());
  });
}

test('the codes of the declarations are those of the classes', () => {
  const alias = source.statements.filter(ts.isTypeAliasDeclaration).find((node) => node.name.text === 'ErrorCode');
  const codes = alias.type.types.map((type) => type.literal.text);
  assert.deepEqual(codes.sort(), Object.keys(byCode).sort());
});
