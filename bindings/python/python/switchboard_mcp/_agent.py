"""The agent and its sessions: `Agent` blocks, `AsyncAgent` is for event loops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from switchboard_mcp import _bridge, _native, _program, _types
from switchboard_mcp._handlers import (
    Handlers,
    Hooks,
    JsonObject,
    OnApproval,
    OnElicitation,
    OnRoots,
    OnSampling,
)
from switchboard_mcp._host import Host, SyncHost, entry_of
from switchboard_mcp._native import Operation
from switchboard_mcp._types import TurnEvent

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from switchboard_mcp._records import Reply, StoredSession, Usage

Path: TypeAlias = "str | PathLike[str]"


class _Parts:
    """What an agent is created from, and what its host needs later."""

    def __init__(self, home: _bridge.Home, handlers: Handlers) -> None:
        self.home = home
        self.handlers = handlers
        self.callbacks = handlers.callbacks(home.inbox)

    def create(self, path: Path | None, **options: Any) -> Operation:
        return _native.Agent.create(
            self.callbacks,
            self.handlers.answered,
            path=path,
            supervisor=_program.find(),
            **options,
        )


class Agent:
    """An agent on a host of its own. Its methods block.

    ```python
    with Agent.create("agent.hcl") as agent:
        print(agent.session(".").send("List the files here"))
    ```
    """

    def __init__(self, native: _native.Agent, parts: _Parts) -> None:
        """Private: use `create`."""
        self._native = native
        #: The host whose tools the agent uses. It is closed with the agent.
        self.host = SyncHost()
        self.host._adopt(native.host, parts.handlers, parts.callbacks, parts.home)  # pyright: ignore[reportPrivateUsage]

    @classmethod
    def create(
        cls,
        path: Path | None = None,
        *,
        model: str | None = None,
        instructions: str | None = None,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        on_approval: OnApproval | None = None,
        on_elicitation: OnElicitation | None = None,
        on_sampling: OnSampling | None = None,
        on_roots: OnRoots | None = None,
        on_before_call: Hooks | None = None,
        on_after_call: Hooks | None = None,
        hook_timeout: float | None = None,
    ) -> Agent:
        """Creates an agent from a configuration file such as `agent.hcl`, or from a folder with one.

        `max_requests` and `max_tokens` limit a turn. Calls that require approval are denied without `on_approval`.
        """
        handlers = Handlers(
            on_elicitation,
            on_sampling,
            on_roots,
            on_approval,
            on_before_call,
            on_after_call,
            hook_timeout,
        )
        parts = _Parts(_bridge.thread(), handlers)
        created = parts.create(
            path, model=model, instructions=instructions, max_requests=max_requests, max_tokens=max_tokens
        )
        return cls(_bridge.block(created), parts)

    def session(self, folder: Path = ".") -> Session:
        """Creates a session that works in a folder."""
        return Session(self._native.session(folder))

    def resume(self, id: str) -> Session:
        """Loads a stored session."""
        return Session(_bridge.block(self._native.resume(id)))

    def sessions(self) -> list[StoredSession]:
        """The stored sessions, newest first."""
        return _types.sessions(_bridge.block(self._native.sessions()))

    def delete(self, id: str) -> bool:
        """Deletes a stored session; `False` if there is none with this id."""
        return cast("bool", _bridge.block(self._native.delete(id)))

    def close(self) -> None:
        """Closes the host and ends its servers. Can be called more than once."""
        self.host.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Session:
    """A conversation with an agent. Its methods block; Ctrl-C interrupts a turn."""

    def __init__(self, native: _native.Session) -> None:
        """Private: use `Agent.session`."""
        self._native = native

    @property
    def id(self) -> str:
        """The id to resume it with."""
        return self._native.id

    @property
    def workspace(self) -> FilePath:
        """The folder that it works in."""
        return self._native.workspace

    def add_mcp_server(
        self,
        name: str,
        transport: str | None = None,
        command: str | None = None,
        args: list[str] | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        **entry: Any,
    ) -> int:
        """Adds a server, waits until it is connected, and returns the number of its tools.

        The tools are there from the next turn.
        """
        text = entry_of(transport=transport, command=command, args=args, url=url, headers=headers, env=env, **entry)
        return cast("int", _bridge.block(self._native.add_mcp_server(name, text)))

    def send(self, text: str) -> Reply:
        """Sends a message and waits for the end of the turn."""
        return _types.reply(_bridge.block(self._native.send(text)))

    def stream(self, text: str) -> Turn:
        """Sends a message: the events of the turn, the last of type `ended`."""
        return Turn(self._native.stream(text))

    def interrupt(self) -> None:
        """Interrupts the running turn, if any. To be called from another thread."""
        self._native.interrupt()

    def messages(self) -> list[JsonObject]:
        """The messages so far."""
        return cast("list[JsonObject]", json.loads(_bridge.block(self._native.messages())))

    def usage(self) -> Usage:
        """The tokens used so far."""
        return _types.usage(_bridge.block(self._native.usage()))

    def compact(self) -> None:
        """Compacts the conversation."""
        _bridge.block(self._native.compact())


class Turn(Iterator[TurnEvent]):
    """The events of a turn, for `for`. Closing or dropping it interrupts the turn."""

    def __init__(self, native: _native.TurnEvents) -> None:
        """Private: use `Session.stream`."""
        self._native = native

    def __next__(self) -> TurnEvent:
        text = _bridge.block(self._native.next())
        if text is None:
            raise StopIteration
        return TurnEvent(json.loads(text))

    def close(self) -> None:
        """Interrupts the turn, unless it has ended."""
        self._native.interrupt()


class AsyncAgent:
    """An agent on a host of its own, for asyncio or trio.

    ```python
    async with await AsyncAgent.create("agent.hcl") as agent:
        print(await agent.session(".").send("List the files here"))
    ```
    """

    def __init__(self, native: _native.Agent, parts: _Parts) -> None:
        """Private: use `create`."""
        self._native = native
        #: The host whose tools the agent uses. It is closed with the agent.
        self.host = Host()
        self.host._adopt(native.host, parts.handlers, parts.callbacks, parts.home)  # pyright: ignore[reportPrivateUsage]

    @classmethod
    async def create(
        cls,
        path: Path | None = None,
        *,
        model: str | None = None,
        instructions: str | None = None,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        on_approval: OnApproval | None = None,
        on_elicitation: OnElicitation | None = None,
        on_sampling: OnSampling | None = None,
        on_roots: OnRoots | None = None,
        on_before_call: Hooks | None = None,
        on_after_call: Hooks | None = None,
        hook_timeout: float | None = None,
    ) -> AsyncAgent:
        """Creates an agent from a configuration file such as `agent.hcl`, or from a folder with one.

        `max_requests` and `max_tokens` limit a turn. Calls that require approval are denied without `on_approval`.
        """
        handlers = Handlers(
            on_elicitation,
            on_sampling,
            on_roots,
            on_approval,
            on_before_call,
            on_after_call,
            hook_timeout,
        )
        parts = _Parts(_bridge.current(), handlers)
        created = parts.create(
            path, model=model, instructions=instructions, max_requests=max_requests, max_tokens=max_tokens
        )
        return cls(await _bridge.wait(created), parts)

    def session(self, folder: Path = ".") -> AsyncSession:
        """Creates a session that works in a folder."""
        return AsyncSession(self._native.session(folder))

    async def resume(self, id: str) -> AsyncSession:
        """Loads a stored session."""
        return AsyncSession(await _bridge.wait(self._native.resume(id)))

    async def sessions(self) -> list[StoredSession]:
        """The stored sessions, newest first."""
        return _types.sessions(await _bridge.wait(self._native.sessions()))

    async def delete(self, id: str) -> bool:
        """Deletes a stored session; `False` if there is none with this id."""
        return cast("bool", await _bridge.wait(self._native.delete(id)))

    async def close(self) -> None:
        """Closes the host and ends its servers. Can be called more than once."""
        await self.host.close()

    async def __aenter__(self) -> AsyncAgent:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncSession:
    """A conversation with an agent, for asyncio or trio. Cancelling a task interrupts its turn."""

    def __init__(self, native: _native.Session) -> None:
        """Private: use `AsyncAgent.session`."""
        self._native = native

    @property
    def id(self) -> str:
        """The id to resume it with."""
        return self._native.id

    @property
    def workspace(self) -> FilePath:
        """The folder that it works in."""
        return self._native.workspace

    async def add_mcp_server(
        self,
        name: str,
        transport: str | None = None,
        command: str | None = None,
        args: list[str] | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        **entry: Any,
    ) -> int:
        """Adds a server, waits until it is connected, and returns the number of its tools.

        The tools are there from the next turn.
        """
        text = entry_of(transport=transport, command=command, args=args, url=url, headers=headers, env=env, **entry)
        return cast("int", await _bridge.wait(self._native.add_mcp_server(name, text)))

    async def send(self, text: str) -> Reply:
        """Sends a message and waits for the end of the turn."""
        return _types.reply(await _bridge.wait(self._native.send(text)))

    def stream(self, text: str) -> AsyncTurn:
        """Sends a message: the events of the turn, the last of type `ended`."""
        return AsyncTurn(self._native.stream(text))

    def interrupt(self) -> None:
        """Interrupts the running turn, if any."""
        self._native.interrupt()

    async def messages(self) -> list[JsonObject]:
        """The messages so far."""
        return cast("list[JsonObject]", json.loads(await _bridge.wait(self._native.messages())))

    async def usage(self) -> Usage:
        """The tokens used so far."""
        return _types.usage(await _bridge.wait(self._native.usage()))

    async def compact(self) -> None:
        """Compacts the conversation."""
        await _bridge.wait(self._native.compact())


class AsyncTurn(AsyncIterator[TurnEvent]):
    """The events of a turn, for `async for`. Closing or dropping it interrupts the turn."""

    def __init__(self, native: _native.TurnEvents) -> None:
        """Private: use `AsyncSession.stream`."""
        self._native = native

    async def __anext__(self) -> TurnEvent:
        text = await _bridge.wait(self._native.next())
        if text is None:
            raise StopAsyncIteration
        return TurnEvent(json.loads(text))

    def close(self) -> None:
        """Interrupts the turn, unless it has ended."""
        self._native.interrupt()
