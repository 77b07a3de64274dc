'use strict';

const { bridge, start } = require('./bridge.js');
const { checked, invalidArguments } = require('./errors.js');
const { Host, hostOptions, internal, pathOf } = require('./host.js');
const { Stream, asyncDispose } = require('./stream.js');
const { parsed } = require('./values.js');

/** The end of a turn. As text it is the answer. */
class Reply {
  constructor(fields) {
    Object.assign(this, fields);
  }

  toString() {
    return this.response;
  }
}

/** A model with the tools of a host. */
class Agent {
  #handle;
  #host;

  static async create(path, options = {}) {
    const { options: host, functions } = hostOptions(options);
    const { model, instructions, signal } = options;
    const maxRequests = count(options.maxRequests, 2 ** 32 - 1);
    const maxTokens = count(options.maxTokens, Number.MAX_SAFE_INTEGER);
    const native = { path: path && pathOf(path), model, instructions, maxRequests, maxTokens, host };
    const handle = await start(functions, (id) => bridge.createAgent(id, native), { signal });
    return new Agent(internal, handle, functions);
  }

  constructor(token, handle, functions) {
    if (token !== internal) throw new TypeError('an agent is created by Agent.create');
    this.#handle = handle;
    this.#host = new Host(internal, handle.host(), functions);
  }

  get host() {
    return this.#host;
  }

  session(folder = '.') {
    return new Session(internal, checked(this.#handle.session(pathOf(folder))), this.#host);
  }

  async resume(id, { signal } = {}) {
    const handle = await start(this, (number) => this.#handle.resume(number, id), { signal });
    return new Session(internal, handle, this.#host);
  }

  async sessions() {
    return parsed(await start(this, (id) => this.#handle.sessions(id)));
  }

  delete(id) {
    return start(this, (number) => this.#handle.delete(number, id));
  }

  close() {
    return this.#host.close();
  }

  async [asyncDispose]() {
    await this.close();
  }
}

/** A conversation of an agent. */
class Session {
  #handle;
  #host;

  constructor(token, handle, host) {
    if (token !== internal) throw new TypeError('a session is created by agent.session or agent.resume');
    this.#handle = handle;
    this.#host = host;
  }

  get id() {
    return this.#handle.id();
  }

  get workspace() {
    return this.#handle.workspace();
  }

  get host() {
    return this.#host;
  }

  addMcpServer(name, transport, command, args, url, headers, env) {
    const entry = typeof transport === 'string' ? { type: transport, command, args, url, headers, env } : transport;
    return this.#host.addServer(name, entry);
  }

  async send(text, { signal } = {}) {
    return new Reply(parsed(await start(this, (id) => this.#handle.send(id, text), { signal })));
  }

  stream(text, { signal } = {}) {
    signal?.throwIfAborted();
    const turn = this.#handle.stream(text);
    return new Stream(turn, parsed, { signal, stop: () => turn.interrupt() });
  }

  interrupt() {
    this.#handle.interrupt();
  }

  async messages() {
    return parsed(await start(this, (id) => this.#handle.messages(id)));
  }

  async usage() {
    return parsed(await start(this, (id) => this.#handle.usage(id)));
  }

  async compact({ signal } = {}) {
    await start(this, (id) => this.#handle.compact(id), { signal });
  }
}

/** Checks a budget. */
function count(value, most) {
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw invalidArguments(`${value} is not a number from 0 to ${most}`);
}

module.exports = { Agent, Session, Reply };
