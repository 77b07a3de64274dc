"""The exceptions, one class for each code that the native module has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class SwitchboardError(Exception):
    """An operation has no result. `__cause__` leads to the errors behind it."""

    default_code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        server: str | None = None,
        step: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        #: What happened, in one sentence without a full stop.
        self.message = message
        #: The kind of failure; each has a class of its own.
        self.code = code or self.default_code
        #: The server concerned.
        self.server = server
        #: The step of connecting that failed: `connecting`, `server/discover`, `initialize`, `tools/list`.
        self.step = step
        #: What to do about it.
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.message, self.code, self.server, self.step, self.hint)


class NotFoundError(SwitchboardError, LookupError):
    """No server or tool has that name."""

    default_code = "not_found"


class InvalidServerError(SwitchboardError, ValueError):
    """The description of a server is invalid."""

    default_code = "invalid_server"


class InvalidConfigurationError(SwitchboardError, ValueError):
    """A configuration file or entry cannot be used."""

    default_code = "invalid_configuration"


class InvalidArgumentsError(SwitchboardError, ValueError):
    """The arguments do not match the tool's schema."""

    default_code = "invalid_arguments"


class DeniedError(SwitchboardError, PermissionError):
    """A rule, a hook or the user denied the call."""

    default_code = "denied"


class NeedsLoginError(SwitchboardError):
    """The server requires a login, or a login failed."""

    default_code = "needs_login"


class UnavailableError(SwitchboardError):
    """The server is disabled, failed, or not connected."""

    default_code = "unavailable"


class TimedOutError(SwitchboardError, TimeoutError):
    """A deadline expired; the call was cancelled."""

    default_code = "timed_out"


class ConnectionLostError(SwitchboardError, ConnectionError):
    """The connection was lost; the call may or may not have taken effect."""

    default_code = "connection_lost"


class RefusedError(SwitchboardError):
    """The server answered with an error, or violated the protocol."""

    default_code = "refused"


class UnexpectedResultError(SwitchboardError):
    """The result does not have the requested form."""

    default_code = "unexpected_result"


class ModelError(SwitchboardError):
    """The model is not configured, or did not answer."""

    default_code = "model"


class OperationCancelledError(SwitchboardError):
    """The program cancelled the operation, other than by cancelling the task that waits for it."""

    default_code = "cancelled"


class ClosedError(SwitchboardError):
    """The host was closed, or not opened."""

    default_code = "closed"


class ForkedError(SwitchboardError):
    """The process was forked after the host was created."""

    default_code = "forked"


class InternalError(SwitchboardError):
    """A bug in Switchboard."""

    default_code = "internal"


class CauseError(Exception):
    """An error behind a `SwitchboardError`."""


BY_CODE: dict[str, type[SwitchboardError]] = {
    error.default_code: error for error in SwitchboardError.__subclasses__()
}


def from_failure(
    code: str,
    message: str,
    server: str | None,
    step: str | None,
    hint: str | None,
    causes: Sequence[str],
) -> SwitchboardError:
    """The exception that the native module raises."""
    error = BY_CODE.get(code, SwitchboardError)(message, code=code, server=server, step=step, hint=hint)
    effect: BaseException = error
    for text in causes:
        effect.__cause__ = CauseError(text)
        effect = effect.__cause__
    return error


def _restore(
    error: type[SwitchboardError],
    message: str,
    code: str,
    server: str | None,
    step: str | None,
    hint: str | None,
) -> SwitchboardError:
    return error(message, code=code, server=server, step=step, hint=hint)
