'use strict';

const { start } = require('./bridge.js');

/** Made up if this version of Node does not have it yet. */
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');

/** An async iterator over what a handle of the native module delivers, one `next(id)` at a time. */
class Stream {
  #handle;
  #convert;
  #options;
  #isDone = false;
  #cancels = new Set();

  /** @param options `signal`, `isBackground`, and `stop`, called if the iterator ends early */
  constructor(handle, convert, options) {
    this.#handle = handle;
    this.#convert = convert;
    this.#options = options;
  }

  async next() {
    if (this.#isDone) return done();
    let cancel;
    const { signal, isBackground } = this.#options;
    const cancellable = (function_) => {
      cancel = function_;
      this.#cancels.add(cancel);
    };
    try {
      const value = await start(this, (id) => this.#handle.next(id), { signal, isBackground, cancellable });
      if (value === null) {
        this.#isDone = true;
        return done();
      }
      return { done: false, value: this.#convert(value) };
    } catch (error) {
      if (error === ended) return done();
      this.#end();
      throw error;
    } finally {
      this.#cancels.delete(cancel);
    }
  }

  async return() {
    this.#end();
    return done();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async [asyncDispose]() {
    this.#end();
  }

  #end() {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#options.stop?.();
    for (const cancel of this.#cancels) cancel(ended);
  }
}

/** Why a `next()` is cancelled that waits when the iterator is closed. */
const ended = new Error('the iterator was closed');

function done() {
  return { done: true, value: undefined };
}

module.exports = { Stream, asyncDispose };
