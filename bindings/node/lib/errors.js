'use strict';

/** An error of Switchboard. Its subclasses differ by `code`. */
class SwitchboardError extends Error {
  constructor(message, { code = 'internal', server, step, hint, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.server = server;
    this.step = step;
    this.hint = hint;
  }

  get name() {
    return this.constructor.name;
  }
}

class NotFoundError extends SwitchboardError {}
class InvalidServerError extends SwitchboardError {}
class InvalidConfigurationError extends SwitchboardError {}
class InvalidArgumentsError extends SwitchboardError {}
class DeniedError extends SwitchboardError {}
class NeedsLoginError extends SwitchboardError {}
class UnavailableError extends SwitchboardError {}
class TimedOutError extends SwitchboardError {}
class ConnectionLostError extends SwitchboardError {}
class RefusedError extends SwitchboardError {}
class UnexpectedResultError extends SwitchboardError {}
class ModelError extends SwitchboardError {}
class CancelledError extends SwitchboardError {}
class ClosedError extends SwitchboardError {}
class ForkedError extends SwitchboardError {}
class InternalError extends SwitchboardError {}

const byCode = {
  not_found: NotFoundError,
  invalid_server: InvalidServerError,
  invalid_configuration: InvalidConfigurationError,
  invalid_arguments: InvalidArgumentsError,
  denied: DeniedError,
  needs_login: NeedsLoginError,
  unavailable: UnavailableError,
  timed_out: TimedOutError,
  connection_lost: ConnectionLostError,
  refused: RefusedError,
  unexpected_result: UnexpectedResultError,
  model: ModelError,
  cancelled: CancelledError,
  closed: ClosedError,
  forked: ForkedError,
  internal: InternalError,
};

/** The error for a failure of the native module. */
function fromFailure({ code, message, server, step, hint, causes }) {
  const cause = causes.reduceRight((cause, text) => new Error(text, cause && { cause }), undefined);
  const Class = byCode[code] ?? SwitchboardError;
  return new Class(message, { code, server, step, hint, cause });
}

/** Returns the value of a native function, or throws its failure. */
function checked(value) {
  if (typeof value?.code === 'string' && Array.isArray(value.causes)) throw fromFailure(value);
  return value;
}

/** An error for arguments that this package cannot pass on. */
function invalidArguments(message, cause) {
  return new InvalidArgumentsError(message, { code: 'invalid_arguments', cause });
}

module.exports = { SwitchboardError, byCode, fromFailure, checked, invalidArguments };
for (const Class of Object.values(byCode)) module.exports[Class.name] = Class;
