"""The exceptions: one class for each code, with server, step, hint and causes."""

from __future__ import annotations

import pickle

import pytest
from conftest import recording

import switchboard_mcp
from switchboard_mcp import (
    CauseError,
    ConnectionLostError,
    Host,
    InvalidArgumentsError,
    InvalidConfigurationError,
    NotFoundError,
    SwitchboardError,
    TimedOutError,
    UnavailableError,
    _errors,
    _native,
)


def test_each_code_has_a_class_with_its_meaning() -> None:
    codes = dict(_native.CODES)
    assert set(codes) == set(_errors.BY_CODE)
    for code, error in _errors.BY_CODE.items():
        assert error.__name__ in switchboard_mcp.__all__
        meaning = (error.__doc__ or "").rstrip(".").lower()
        assert meaning.startswith(codes[code].lower()) or code in ("cancelled", "closed"), code


def test_classes_are_also_those_of_python() -> None:
    assert issubclass(TimedOutError, TimeoutError)
    assert issubclass(ConnectionLostError, ConnectionError)
    assert issubclass(NotFoundError, LookupError)


async def test_a_server_that_does_not_start() -> None:
    async with Host() as host:
        with pytest.raises(UnavailableError) as caught:
            await host.add_server("gone", command="no-such-program-here")
        error = caught.value
        assert (error.code, error.server, error.step) == ("unavailable", "gone", "connecting")
        assert isinstance(error.__cause__, CauseError)
        assert "no-such-program-here" in str(error.__cause__)


async def test_a_server_that_ends_with_a_message(tmp_path: object) -> None:
    async with Host() as host:
        with pytest.raises(SwitchboardError) as caught:
            await host.add_server("bad", command="sh", args=["-c", "echo first >&2; echo second >&2; exit 1"])
        causes: list[str] = []
        cause = caught.value.__cause__
        while cause is not None:
            causes.append(str(cause))
            cause = cause.__cause__
        assert "first\nsecond" in causes[-1]


async def test_names_and_arguments_that_do_not_exist() -> None:
    async with Host.from_servers({"recording": recording()}) as host:
        with pytest.raises(NotFoundError):
            await host.call("recording/missing")
        with pytest.raises(NotFoundError) as caught:
            await host.list_tools("missing")
        assert caught.value.server == "missing"
        with pytest.raises(NotFoundError):
            await host.restart("missing")
    with pytest.raises(InvalidConfigurationError, match="both"):
        await Host.from_servers({"both": {"command": "a", "url": "https://b.example"}})


async def test_a_connection_that_is_lost_during_a_call() -> None:
    async with Host.from_servers({"recording": recording()}) as host:
        with pytest.raises(ConnectionLostError) as caught:
            await host.call("recording/die")
        assert caught.value.server == "recording"
        # The server is started again.
        assert (await host.call("recording/fail")).text == "it failed"


def test_errors_can_be_sent_to_other_processes() -> None:
    error = InvalidArgumentsError("no", server="files", step="connecting", hint="try again")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is InvalidArgumentsError
    assert (str(copy), copy.code, copy.server) == ("no; try again", "invalid_arguments", "files")
