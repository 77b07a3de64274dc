'use strict';

const { inspect } = require('node:util');

/** A result, read and parsed when it is looked at. */
class CallResult {
  #handle;
  #text;
  #raw;
  #parsed;

  constructor(handle) {
    this.#handle = handle;
  }

  get text() {
    return (this.#text ??= this.#handle.text());
  }

  get raw() {
    return (this.#raw ??= this.#handle.raw());
  }

  get content() {
    return this.#value().content ?? [];
  }

  get structured() {
    return this.#value().structuredContent;
  }

  get meta() {
    return this.#value()._meta;
  }

  get isError() {
    return this.#handle.isError();
  }

  get server() {
    return this.#handle.server() ?? undefined;
  }

  get tool() {
    return this.#handle.tool();
  }

  get elapsed() {
    return this.#handle.elapsed();
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return this.#value();
  }

  [inspect.custom](depth, options) {
    return `CallResult ${inspect(this.#value(), options)}`;
  }

  #value() {
    return (this.#parsed ??= JSON.parse(this.raw));
  }
}

/** A tool in a list of the native module. */
class Tool {
  #list;
  #index;

  constructor(list, index) {
    this.#list = list;
    this.#index = index;
  }

  get name() {
    return this.#list.name(this.#index);
  }

  get server() {
    return this.#list.server(this.#index);
  }

  get tool() {
    return this.#list.tool(this.#index);
  }

  get title() {
    return this.#list.title(this.#index) ?? undefined;
  }

  get description() {
    return this.#list.description(this.#index);
  }

  get inputSchema() {
    return JSON.parse(this.#list.inputSchema(this.#index));
  }

  get outputSchema() {
    const schema = this.#list.outputSchema(this.#index);
    return schema ? JSON.parse(schema) : undefined;
  }

  get definition() {
    return JSON.parse(this.#list.definition(this.#index));
  }

  get score() {
    return this.#list.score(this.#index) ?? undefined;
  }

  toJSON() {
    const { name, server, tool, title, description, inputSchema, outputSchema, score } = this;
    return { name, server, tool, title, description, inputSchema, outputSchema, score };
  }

  [inspect.custom](depth, options) {
    return `Tool ${inspect(this.toJSON(), options)}`;
  }
}

/** The tools of a list of the native module. */
function toolsOf(list) {
  return Array.from({ length: list.count() }, (_, index) => new Tool(list, index));
}

/** Renames keys to camel case, but not in arguments, which servers define. */
function camelCase(value) {
  if (Array.isArray(value)) return value.map(camelCase);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
    key === 'arguments' ? value : camelCase(value),
  ]);
  return Object.fromEntries(entries);
}

/** The value of JSON that Switchboard wrote. */
function parsed(json) {
  return camelCase(JSON.parse(json));
}

module.exports = { CallResult, Tool, toolsOf, parsed };
