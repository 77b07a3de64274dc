'use strict';

/**
 * Operations of the native module as promises, and questions of the native module as calls of functions. One bridge for
 * each thread.
 */

const { performance } = require('node:perf_hooks');
const { setImmediate, setInterval } = require('node:timers');
const { fromFailure, invalidArguments } = require('./errors.js');
const { native: loadNative } = require('./platform.js');

const native = loadNative();

/** How long calls that end at once may follow each other before the event loop turns, in milliseconds. */
const TURN = 1;

/** Operations under way, by id. */
const operations = new Map();
let lastId = 0;

/** The event loop lives while an operation is under way that the program waits for. */
const alive = setInterval(() => {}, 2 ** 31 - 1);
alive.unref();
let awaited = 0;

/** The functions of each host, by number. Weak, so that a host can be collected although its functions refer to it. */
const tables = new Map();
let lastTable = 0;
const collected = new FinalizationRegistry((table) => tables.delete(table));

/** Aborts the functions that are being called, by question. */
const questions = new Map();

const bridge = new native.Bridge(report);

/** When the other tasks of the event loop last ran while calls ended at once, in milliseconds. */
let turned = 0;

/** Receives the message of a call that ended at once. Such calls must not keep the event loop from turning. */
function reportAtOnce(message) {
  const now = performance.now();
  if (now - turned < TURN) {
    report(message);
  } else {
    turned = now;
    setImmediate(report, message);
  }
}

/** Receives messages: kind, id and values of each, one after the other. The kinds are those of `src/bridge.rs`. */
function report(messages) {
  for (let at = 0; at < messages.length; ) {
    const kind = messages[at];
    const id = messages[at + 1];
    const value = messages[at + 2];
    if (kind === 6) {
      const [isError, elapsed, server, tool] = messages.slice(at + 3, at + 7);
      forget(id)?.resolve(new CopiedResult(value, isError, elapsed, server, tool));
      at += 7;
      continue;
    }
    at += 3;
    try {
      receive(kind, id, value);
    } catch (error) {
      // An error of a function of the program: it must not keep the other messages back.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

function receive(kind, id, value) {
  switch (kind) {
    case 0:
      forget(id)?.resolve(value);
      break;
    case 1:
      forget(id)?.reject(fromFailure(value));
      break;
    case 2:
      operations.get(id)?.onProgress?.(value);
      break;
    case 3:
      operations.get(id)?.open?.(value);
      break;
    case 4:
      void answer(id, value);
      break;
    case 5:
      questions.get(id)?.abort();
      break;
  }
}

/** A small result. A large one is a `ResultHandle` of the native module, with the same methods. */
class CopiedResult {
  #raw;
  #isError;
  #elapsed;
  #server;
  #tool;

  constructor(raw, isError, elapsed, server, tool) {
    this.#raw = raw;
    this.#isError = isError;
    this.#elapsed = elapsed;
    this.#server = server;
    this.#tool = tool;
  }

  text() {
    return native.Bridge.textOf(this.#raw);
  }

  raw() {
    return this.#raw;
  }

  isError() {
    return this.#isError;
  }

  server() {
    return this.#server;
  }

  tool() {
    return this.#tool;
  }

  elapsed() {
    return this.#elapsed;
  }
}

/**
 * Starts an operation and returns its promise.
 *
 * @param owner what must not be collected before the end
 * @param run starts the operation under an id; returns the message of its end if it has ended already
 * @param options `signal`, `onProgress`, `open`; `isBackground` if the event loop may end first; `cancellable` receives a
 * function that ends the operation
 */
function start(owner, run, { signal, onProgress, open, isBackground = false, cancellable } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    lastId = (lastId % 0xffff_ffff) + 1;
    const id = lastId;
    const cancel = (reason) => {
      if (forget(id)) {
        bridge.cancel(id);
        reject(reason);
      }
    };
    const operation = { owner, resolve, reject, onProgress, open, isBackground, release: undefined };
    if (signal) {
      const abort = () => cancel(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      operation.release = () => signal.removeEventListener('abort', abort);
    }
    operations.set(id, operation);
    if (!isBackground && awaited++ === 0) alive.ref();
    let ended;
    try {
      ended = run(id);
    } catch (error) {
      forget(id);
      reject(invalidArguments(error.message, error));
      return;
    }
    cancellable?.(cancel);
    if (ended) reportAtOnce(ended);
  });
}

/** Removes an operation that ends. */
function forget(id) {
  const operation = operations.get(id);
  if (!operation) return undefined;
  operations.delete(id);
  if (!operation.isBackground && --awaited === 0) alive.unref();
  operation.release?.();
  return operation;
}

/** The functions of a host that servers ask. */
class Functions {
  constructor(callbacks) {
    this.callbacks = callbacks;
    this.tools = new Map();
    lastTable += 1;
    this.table = lastTable;
    tables.set(this.table, new WeakRef(this));
    collected.register(this, this.table);
  }

  call({ isTool, name, payload }, options) {
    const parameters = JSON.parse(payload);
    if (isTool) return this.tools.get(name)(parameters, options);
    return this.callbacks[name](parameters, options);
  }
}

async function answer(id, question) {
  const controller = new AbortController();
  questions.set(id, controller);
  try {
    const functions = tables.get(question.table)?.deref();
    if (!functions) throw new Error('the host of the function was collected');
    const value = await functions.call(question, { signal: controller.signal });
    bridge.resolve(id, JSON.stringify(value ?? null));
  } catch (error) {
    bridge.reject(id, error instanceof Error ? error.message : String(error));
  } finally {
    questions.delete(id);
  }
}

module.exports = { native, bridge, start, Functions };
