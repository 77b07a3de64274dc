'use strict';

const { invalidArguments } = require('./errors.js');

const DRAFT = 'draft-2020-12';

/**
 * The JSON Schema of a tool's arguments, and a function that checks arguments: of a JSON Schema, of zod, or of any
 * library that implements Standard Schema and can write JSON Schema.
 */
function schemaOf(schema) {
  if (schema === undefined || schema === null) return { json: { type: 'object' }, parse: (value) => value };
  const standard = schema['~standard'];
  if (!standard) {
    if (typeof schema !== 'object') throw invalidArguments('the schema of a tool is not an object');
    return { json: schema, parse: (value) => value };
  }
  return { json: jsonSchema(schema, standard), parse: (value) => validate(standard, value) };
}

function jsonSchema(schema, standard) {
  if (typeof standard.jsonSchema?.input === 'function') return standard.jsonSchema.input({ target: DRAFT });
  if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema({ io: 'input' });
  if (schema._zod) {
    return require('zod/v4').toJSONSchema(schema, { io: 'input' });
  }
  throw invalidArguments(
    `${standard.vendor} cannot write this schema as JSON Schema: pass a JSON Schema, or use zod 4`,
  );
}

async function validate(standard, value) {
  const result = await standard.validate(value);
  if (!result.issues) return result.value;
  const issues = result.issues.map(({ message, path }) => {
    const place = (path ?? []).map((part) => String(part?.key ?? part)).join('.');
    return place ? `${place}: ${message}` : message;
  });
  throw invalidArguments(issues.join('; '));
}

module.exports = { schemaOf };
