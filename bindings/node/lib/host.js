'use strict';

const { fileURLToPath } = require('node:url');
const { bridge, start, Functions } = require('./bridge.js');
const { SwitchboardError, checked, invalidArguments } = require('./errors.js');
const { program } = require('./platform.js');
const { schemaOf } = require('./schema.js');
const { Stream, asyncDispose } = require('./stream.js');
const { CallResult, parsed, toolsOf } = require('./values.js');

/** Only this package constructs hosts. */
const internal = Symbol('switchboard-mcp');

const optional = (value) => value ?? undefined;

const pathOf = (path) => (path instanceof URL ? fileURLToPath(path) : String(path));

/** The options of a native host, and its functions, from the options of the program. */
function hostOptions({ env, files, servers, hookTimeout, ...functionOptions } = {}) {
  const { onElicitation, onSampling, onRoots, onApproval, onBeforeCall, onAfterCall } = functionOptions;
  const callbacks = {};
  if (onElicitation) callbacks.elicitation = ({ server, params }, options) => onElicitation(server, params, options);
  if (onSampling) callbacks.sampling = ({ server, params }, options) => onSampling(server, params, options);
  if (onRoots) callbacks.roots = ({ server }, options) => onRoots(server, options);
  if (onApproval) callbacks.approval = onApproval;
  const hooks = [...hooksOf('before_call', onBeforeCall), ...hooksOf('after_call', onAfterCall)];
  hooks.forEach(({ run }, index) => (callbacks[`hook ${index}`] = run));
  const functions = new Functions(callbacks);
  // Not the environment of the process, which differs in a worker.
  const variables = Object.entries(env ?? process.env).filter(([, value]) => value !== undefined);
  const options = {
    files: files?.map(pathOf),
    servers: servers && JSON.stringify(servers),
    supervisor: program(),
    environment: Object.fromEntries(variables.map(([name, value]) => [name, String(value)])),
    table: functions.table,
    callbacks: Object.keys(callbacks),
    hooks: hooks.map(({ event, tool }) => ({ event, tool })),
    hookTimeout: duration(hookTimeout),
  };
  return { options, functions };
}

/** The hooks of an event: one function for all tools, or functions by the tools that they cover. */
function hooksOf(event, hooks) {
  if (hooks === undefined || hooks === null) return [];
  const byTool = typeof hooks === 'function' ? { '*': hooks } : hooks;
  return Object.entries(byTool).map(([tool, run]) => {
    if (typeof run !== 'function') throw invalidArguments(`the hook for ${tool} is not a function`);
    return { event, tool, run };
  });
}

/** A host: the servers of a program, and their tools. */
class Host {
  #handle;
  #functions;

  static async create(options = {}) {
    const { options: native, functions } = hostOptions(options);
    if (options.cwd !== undefined) native.folder = pathOf(options.cwd);
    const open = (id) => bridge.openHost(id, native);
    const handle = await start(functions, open, { signal: options.signal });
    return new Host(internal, handle, functions);
  }

  static fromConfig(cwd = '.', options = {}) {
    return Host.create({ ...options, cwd });
  }

  static fromServers(servers, options = {}) {
    return Host.create({ ...options, servers });
  }

  constructor(token, handle, functions) {
    if (token !== internal) throw new TypeError('a host is created by Host.create, Host.fromConfig or Host.fromServers');
    this.#handle = handle;
    this.#functions = functions;
  }

  async listTools({ server, signal } = {}) {
    return toolsOf(await this.#tools(server, signal));
  }

  async call(name, args, { timeout, totalTimeout, onProgress, signal } = {}) {
    const text = args === undefined || args === null ? undefined : JSON.stringify(args);
    const [idle, total] = [duration(timeout), duration(totalTimeout)];
    const call = (id) => this.#handle.call(id, name, text, idle, total, onProgress !== undefined);
    return new CallResult(await start(this, call, { onProgress, signal }));
  }

  async search(query, { limit = 10, signal } = {}) {
    return toolsOf(await start(this, (id) => this.#handle.search(id, query, limit), { signal }));
  }

  async resources({ server, signal } = {}) {
    return JSON.parse(await start(this, (id) => this.#handle.resources(id, optional(server)), { signal }));
  }

  async resourceTemplates({ server, signal } = {}) {
    return JSON.parse(await start(this, (id) => this.#handle.resourceTemplates(id, optional(server)), { signal }));
  }

  async read(server, uri, { signal } = {}) {
    return JSON.parse(await start(this, (id) => this.#handle.read(id, server, uri), { signal }));
  }

  async prompts({ server, signal } = {}) {
    return JSON.parse(await start(this, (id) => this.#handle.prompts(id, optional(server)), { signal }));
  }

  async prompt(server, name, args, { signal } = {}) {
    const text = args && JSON.stringify(args);
    return JSON.parse(await start(this, (id) => this.#handle.prompt(id, server, name, text), { signal }));
  }

  status() {
    return parsed(checked(this.#handle.status()));
  }

  events({ signal } = {}) {
    return new Stream(checked(this.#handle.events()), parsed, { signal, isBackground: true });
  }

  addServer(name, entry, { signal } = {}) {
    return start(this, (id) => this.#handle.addServer(id, name, JSON.stringify(entry)), { signal });
  }

  removeServer(name) {
    return start(this, (id) => this.#handle.removeServer(id, name));
  }

  async enable(name) {
    await start(this, (id) => this.#handle.setEnabled(id, name, true));
  }

  async disable(name) {
    await start(this, (id) => this.#handle.setEnabled(id, name, false));
  }

  restart(name, { signal } = {}) {
    return start(this, (id) => this.#handle.restart(id, name), { signal });
  }

  async login(name, { open, signal } = {}) {
    if (typeof open !== 'function') throw invalidArguments('login needs a function `open` that shows an address to the user');
    await start(this, (id) => this.#handle.login(id, name), { open, signal });
  }

  tool(name, schema, run, { description, title, readOnly, destructive, idempotent, openWorld } = {}) {
    if (typeof run !== 'function') throw invalidArguments(`the tool ${name} has no function`);
    const { json, parse } = schemaOf(schema);
    const hints = {
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      openWorldHint: openWorld,
    };
    const isDeclared = Object.values(hints).some((hint) => hint !== undefined);
    const definition = { name, title, description, inputSchema: json, annotations: isDeclared ? hints : undefined };
    const { tools } = this.#functions;
    const before = tools.get(name);
    tools.set(name, async (args, options) => run(await parse(args), options));
    try {
      checked(this.#handle.addTool(JSON.stringify(definition)));
    } catch (error) {
      if (before) tools.set(name, before);
      else tools.delete(name);
      throw error;
    }
  }

  async openaiTools({ responses = false, server, signal } = {}) {
    const tools = await this.#tools(server, signal);
    return JSON.parse(tools.formatted(responses ? 'openai-responses' : 'openai'));
  }

  async anthropicTools({ server, signal } = {}) {
    return JSON.parse((await this.#tools(server, signal)).formatted('anthropic'));
  }

  async langchainTools({ server, signal } = {}) {
    const { tool: wrap } = await import('@langchain/core/tools');
    const tools = await this.listTools({ server, signal });
    const call = async (name, args, config) => {
      const result = await this.call(name, args, { signal: config?.signal });
      if (result.isError) throw new SwitchboardError(result.text, { code: 'refused', server: result.server });
      return [result.text, result];
    };
    return tools.map(({ name, description, inputSchema: schema }) => {
      const fields = { name, description, schema, responseFormat: 'content_and_artifact' };
      return wrap((args, config) => call(name, args, config), fields);
    });
  }

  async close() {
    await start(this, (id) => this.#handle.close(id));
  }

  async [asyncDispose]() {
    await this.close();
  }

  #tools(server, signal) {
    return start(this, (id) => this.#handle.tools(id, optional(server)), { signal });
  }
}

/** Checks a time in milliseconds. */
function duration(milliseconds) {
  if (milliseconds === undefined || milliseconds === null) return undefined;
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds;
  throw invalidArguments(`${milliseconds} is not a time in milliseconds`);
}

module.exports = { Host, hostOptions, internal, pathOf };
