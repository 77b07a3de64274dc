"""The host: `Host` for event loops, `SyncHost` for plain programs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

from switchboard_mcp import _bridge, _native, _program, _types
from switchboard_mcp._errors import ClosedError, InvalidArgumentsError
from switchboard_mcp._handlers import (
    Handlers,
    Hooks,
    JsonObject,
    OnApproval,
    OnElicitation,
    OnRoots,
    OnSampling,
    OwnTool,
)
from switchboard_mcp._json import dumps
from switchboard_mcp._native import Operation, Tool
from switchboard_mcp._types import CallResult, HostEvent, ToolMatch

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

    from switchboard_mcp._records import ServerStatus

Self = TypeVar("Self", bound="_HostBase")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Receives progress: the amount done, the amount in total if known, and a text.
OnProgress: TypeAlias = "Callable[[float, float | None, str | None], object]"
#: Opens the page of a login in a browser.
OpenPage: TypeAlias = "Callable[[str], object]"
Path: TypeAlias = "str | PathLike[str]"


def open_page(url: str) -> None:
    """Opens a page in the user's browser."""
    import webbrowser

    webbrowser.open(url)


class _HostBase:
    """What both kinds of hosts share. Nothing here waits."""

    def __init__(
        self,
        *,
        on_elicitation: OnElicitation | None = None,
        on_sampling: OnSampling | None = None,
        on_roots: OnRoots | None = None,
        on_approval: OnApproval | None = None,
        on_before_call: Hooks | None = None,
        on_after_call: Hooks | None = None,
        hook_timeout: float | None = None,
    ) -> None:
        self._handlers = Handlers(
            on_elicitation,
            on_sampling,
            on_roots,
            on_approval,
            on_before_call,
            on_after_call,
            hook_timeout,
        )
        self._folder: Path | None = None
        self._servers: str | None = None
        self._home: _bridge.Home | None = None
        self._callbacks: _native.Callbacks | None = None
        self._opened: _native.Host | None = None
        self._is_opening = False

    @classmethod
    def from_config(
        cls: type[Self],
        cwd: Path = ".",
        *,
        on_elicitation: OnElicitation | None = None,
        on_sampling: OnSampling | None = None,
        on_roots: OnRoots | None = None,
        on_approval: OnApproval | None = None,
        on_before_call: Hooks | None = None,
        on_after_call: Hooks | None = None,
        hook_timeout: float | None = None,
    ) -> Self:
        """A host with the configuration of a folder, as the program `switchboard` uses it there."""
        host = cls(
            on_elicitation=on_elicitation,
            on_sampling=on_sampling,
            on_roots=on_roots,
            on_approval=on_approval,
            on_before_call=on_before_call,
            on_after_call=on_after_call,
            hook_timeout=hook_timeout,
        )
        host._folder = cwd
        return host

    @classmethod
    def from_servers(
        cls: type[Self],
        servers: Mapping[str, Any],
        *,
        on_elicitation: OnElicitation | None = None,
        on_sampling: OnSampling | None = None,
        on_roots: OnRoots | None = None,
        on_approval: OnApproval | None = None,
        on_before_call: Hooks | None = None,
        on_after_call: Hooks | None = None,
        hook_timeout: float | None = None,
    ) -> Self:
        """A host with these servers: entries by name, alone or under `mcpServers`."""
        host = cls(
            on_elicitation=on_elicitation,
            on_sampling=on_sampling,
            on_roots=on_roots,
            on_approval=on_approval,
            on_before_call=on_before_call,
            on_after_call=on_after_call,
            hook_timeout=hook_timeout,
        )
        host._servers = dumps(servers)
        return host

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        schema: JsonObject | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        schema: JsonObject | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> Any:
        """Makes a function a tool of this host, on the server `local`.

        The definition comes from the function's name, docstring, type hints and defaults. A plain function runs in a
        thread, an asynchronous one where the host was opened; it is cancelled when the call is.

        `read_only`, `destructive`, `idempotent` and `open_world` become the annotations of the tool. What you do not
        pass is not declared.
        """

        # Not needed by most programs.
        from switchboard_mcp._schema import describe

        hints = {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        }
        annotations = {hint: value for hint, value in hints.items() if value is not None}

        def add(function: Function) -> Function:
            described = describe(function, schema)
            tool_name = name or cast("str", getattr(function, "__name__", type(function).__name__))
            definition: JsonObject = {
                "name": tool_name,
                "description": described.description if description is None else description,
                "inputSchema": described.schema,
            }
            if title is not None:
                definition["title"] = title
            if annotations:
                definition["annotations"] = annotations
            self._handlers.tools[tool_name] = OwnTool(definition, function, described.bind)
            if self._opened is not None:
                self._add_tool(definition)
            return function

        return add if function is None else add(function)

    def events(self) -> Any:
        """The events from now on, until the host is closed."""
        raise NotImplementedError

    def status(self) -> list[ServerStatus]:
        """The statuses of all servers."""
        return _types.statuses(self._active.status())

    @property
    def _active(self) -> _native.Host:
        if self._opened is None:
            raise ClosedError("the host is not open", hint="use `with`, `async with` or `open()`")
        self._settle()
        return self._opened

    def _settle(self) -> None:
        """Moves to the running event loop if the one that the host was opened in is gone."""

    def _add_tool(self, definition: JsonObject) -> None:
        home = self._find_home()
        if self._callbacks is None:
            self._callbacks = self._handlers.callbacks(home.inbox)
        elif self._home is not home and (self._home is None or self._home.is_gone):
            self._callbacks.redirect(home.inbox)
            self._home = home
        assert self._opened is not None
        self._opened.add_tool(dumps(definition), self._callbacks)

    def _find_home(self) -> _bridge.Home:
        raise NotImplementedError

    def _open(self) -> Operation:
        if self._opened is not None or self._is_opening:
            raise InvalidArgumentsError("the host is open already")
        self._is_opening = True
        self._home = self._find_home()
        self._callbacks = self._handlers.callbacks(self._home.inbox)
        return _native.Host.open(
            self._callbacks,
            self._handlers.answered,
            folder=self._folder,
            # A host without a description has no servers.
            servers=self._servers or (None if self._folder is not None else "{}"),
            supervisor=_program.find(),
        )

    def _set_opened(self, host: _native.Host) -> None:
        self._opened = host
        for tool in self._handlers.tools.values():
            self._add_tool(tool.definition)

    def _call(
        self,
        name: str,
        args: Mapping[str, Any] | None,
        timeout: float | None,
        total_timeout: float | None,
    ) -> _bridge.Start:
        host = self._active
        arguments = None if args is None else dumps(args)
        return lambda inbox, key: host.call(name, arguments, timeout, total_timeout, (inbox, key))

    def _adopt(self, host: _native.Host, handlers: Handlers, callbacks: _native.Callbacks, home: _bridge.Home) -> None:
        """Becomes the host of an agent."""
        self._opened, self._handlers, self._callbacks, self._home = host, handlers, callbacks, home


class Host(_HostBase):
    """A host for programs with an event loop: asyncio, or trio.

    ```python
    async with Host.from_config(".") as host:
        print(await host.call("files/read_text_file", {"path": "README.md"}))
    ```
    """

    async def open(self) -> Host:
        """Opens the host and starts its servers, without waiting for them. `async with` does this."""
        try:
            self._set_opened(await _bridge.wait(self._open()))
        finally:
            self._is_opening = False
        return self

    def __await__(self) -> Generator[Any, Any, Host]:
        return self.open().__await__()

    async def __aenter__(self) -> Host:
        if self._opened is None:
            await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every connection and ends every server. Can be called from any task, and more than once."""
        if self._opened is not None:
            await _bridge.wait(self._opened.close())

    async def list_tools(self, server: str | None = None) -> list[Tool]:
        """The tools of all servers, or of one: waits until each server has connected or failed."""
        return cast("list[Tool]", await _bridge.wait(self._active.tools(server)))

    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult:
        """Calls a tool: `server/tool`, `mcp__server__tool`, or the tool's name if only one server has it.

        `timeout` is the time in seconds without an answer or progress, `total_timeout` the time in all. Cancelling the
        task cancels the call at the server.
        """
        if on_progress is None:
            host = self._active
            arguments = None if args is None else dumps(args)
            return CallResult(await _bridge.wait(host.call(name, arguments, timeout, total_timeout)))
        start = self._call(name, args, timeout, total_timeout)
        return CallResult(await _bridge.wait_watching(start, _bridge.watch_with(on_progress)))

    async def search(self, query: str, limit: int = 10) -> list[ToolMatch]:
        """Searches the tools, best match first."""
        return [ToolMatch(*hit) for hit in await _bridge.wait(self._active.search(query, limit))]

    async def resources(self, server: str | None = None) -> list[JsonObject]:
        """The resources of all servers, or of one; each has its `server`."""
        return await self._list("resources", server)

    async def resource_templates(self, server: str | None = None) -> list[JsonObject]:
        """The resource templates of all servers, or of one; each has its `server`."""
        return await self._list("resource_templates", server)

    async def prompts(self, server: str | None = None) -> list[JsonObject]:
        """The prompts of all servers, or of one; each has its `server`."""
        return await self._list("prompts", server)

    async def read(self, server: str, uri: str) -> JsonObject:
        """Reads a resource: the result as the server sent it, with `contents`."""
        return cast("JsonObject", json.loads(await _bridge.wait(self._active.read(server, uri))))

    async def prompt(self, server: str, name: str, args: Mapping[str, str] | None = None) -> JsonObject:
        """Gets a prompt: the result as the server sent it, with `messages`."""
        arguments = None if args is None else dumps(args)
        return cast("JsonObject", json.loads(await _bridge.wait(self._active.prompt(server, name, arguments))))

    def events(self) -> HostEvents:
        """The events from now on, until the host is closed."""
        return HostEvents(self._active.events())

    async def add_server(
        self,
        name: str,
        *,
        transport: str | None = None,
        command: str | None = None,
        args: list[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        **entry: Any,
    ) -> int:
        """Adds a server, waits until it is connected, and returns the number of its tools.

        Further keys of an entry in `.mcp.json` can be passed by name.
        """
        text = entry_of(
            transport=transport, command=command, args=args, env=env, cwd=cwd, url=url, headers=headers, **entry
        )
        return cast("int", await _bridge.wait(self._active.add_server(name, text)))

    async def remove_server(self, name: str) -> bool:
        """Removes a server. `False` if no server has that name."""
        return cast("bool", await _bridge.wait(self._active.remove_server(name)))

    async def enable(self, name: str) -> None:
        """Enables a server for the lifetime of this host."""
        await _bridge.wait(self._active.set_enabled(name, True))

    async def disable(self, name: str) -> None:
        """Disables a server for the lifetime of this host."""
        await _bridge.wait(self._active.set_enabled(name, False))

    async def restart(self, name: str) -> int:
        """Reconnects a server, waits until it is connected, and returns the number of its tools."""
        return cast("int", await _bridge.wait(self._active.restart(name)))

    async def login(self, server: str, open: OpenPage = open_page) -> None:
        """Logs in to a server: opens the page, and waits for the user."""
        host = self._active
        await _bridge.wait_watching(lambda inbox, key: host.login(server, inbox, key), _bridge.watch_with(open))

    async def openai_tools(self, *, responses: bool = False) -> list[JsonObject]:
        """The tools as OpenAI's Chat Completions take them, or its Responses."""
        return _format(await self.list_tools(), "openai-responses" if responses else "openai")

    async def anthropic_tools(self) -> list[JsonObject]:
        """The tools as Anthropic's Messages take them."""
        return _format(await self.list_tools(), "anthropic")

    async def langchain_tools(self) -> list[StructuredTool]:
        """The tools as LangChain takes them."""

        def call_sync(name: str, arguments: JsonObject) -> CallResult:
            if self._home is not None and self._home.is_current() and not self._handlers.is_empty:
                raise RuntimeError("the event loop runs the callbacks of this host; use `ainvoke`")
            return CallResult(_bridge.block(self._active.call(name, dumps(arguments))))

        return [_langchain_tool(tool, call_sync, self.call) for tool in await self.list_tools()]

    async def _list(self, kind: Literal["resources", "resource_templates", "prompts"], server: str | None) -> list[JsonObject]:
        return cast("list[JsonObject]", json.loads(await _bridge.wait(self._active.list(kind, server))))

    def _find_home(self) -> _bridge.Home:
        try:
            return _bridge.current()
        except RuntimeError:
            # Called outside of an event loop.
            return self._home or _bridge.thread()

    def _settle(self) -> None:
        if self._home is not None and self._callbacks is not None and self._home.is_gone:
            self._home = self._find_home()
            self._callbacks.redirect(self._home.inbox)


class SyncHost(_HostBase):
    """A host for programs without an event loop. Its methods block; they can be called from any thread.

    ```python
    with SyncHost.from_config(".") as host:
        print(host.call("files/read_text_file", {"path": "README.md"}))
    ```
    """

    def open(self) -> SyncHost:
        """Opens the host and starts its servers, without waiting for them. `with` does this."""
        try:
            self._set_opened(_bridge.block(self._open()))
        finally:
            self._is_opening = False
        return self

    def __enter__(self) -> SyncHost:
        if self._opened is None:
            self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection and ends every server. Can be called from any thread, and more than once."""
        if self._opened is not None:
            _bridge.block(self._opened.close())

    def list_tools(self, server: str | None = None) -> list[Tool]:
        """The tools of all servers, or of one: waits until each server has connected or failed."""
        return cast("list[Tool]", _bridge.block(self._active.tools(server)))

    def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult:
        """Calls a tool: `server/tool`, `mcp__server__tool`, or the tool's name if only one server has it.

        `timeout` is the time in seconds without an answer or progress, `total_timeout` the time in all. Ctrl-C cancels
        the call at the server.
        """
        if on_progress is None:
            host = self._active
            arguments = None if args is None else dumps(args)
            return CallResult(_bridge.block(host.call(name, arguments, timeout, total_timeout)))
        start = self._call(name, args, timeout, total_timeout)
        return CallResult(_bridge.block_watching(start, _bridge.watch_with(on_progress)))

    def search(self, query: str, limit: int = 10) -> list[ToolMatch]:
        """Searches the tools, best match first."""
        return [ToolMatch(*hit) for hit in _bridge.block(self._active.search(query, limit))]

    def resources(self, server: str | None = None) -> list[JsonObject]:
        """The resources of all servers, or of one; each has its `server`."""
        return self._list("resources", server)

    def resource_templates(self, server: str | None = None) -> list[JsonObject]:
        """The resource templates of all servers, or of one; each has its `server`."""
        return self._list("resource_templates", server)

    def prompts(self, server: str | None = None) -> list[JsonObject]:
        """The prompts of all servers, or of one; each has its `server`."""
        return self._list("prompts", server)

    def read(self, server: str, uri: str) -> JsonObject:
        """Reads a resource: the result as the server sent it, with `contents`."""
        return cast("JsonObject", json.loads(_bridge.block(self._active.read(server, uri))))

    def prompt(self, server: str, name: str, args: Mapping[str, str] | None = None) -> JsonObject:
        """Gets a prompt: the result as the server sent it, with `messages`."""
        arguments = None if args is None else dumps(args)
        return cast("JsonObject", json.loads(_bridge.block(self._active.prompt(server, name, arguments))))

    def events(self) -> SyncHostEvents:
        """The events from now on, until the host is closed."""
        return SyncHostEvents(self._active.events())

    def add_server(
        self,
        name: str,
        *,
        transport: str | None = None,
        command: str | None = None,
        args: list[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        **entry: Any,
    ) -> int:
        """Adds a server, waits until it is connected, and returns the number of its tools.

        Further keys of an entry in `.mcp.json` can be passed by name.
        """
        text = entry_of(
            transport=transport, command=command, args=args, env=env, cwd=cwd, url=url, headers=headers, **entry
        )
        return cast("int", _bridge.block(self._active.add_server(name, text)))

    def remove_server(self, name: str) -> bool:
        """Removes a server. `False` if no server has that name."""
        return cast("bool", _bridge.block(self._active.remove_server(name)))

    def enable(self, name: str) -> None:
        """Enables a server for the lifetime of this host."""
        _bridge.block(self._active.set_enabled(name, True))

    def disable(self, name: str) -> None:
        """Disables a server for the lifetime of this host."""
        _bridge.block(self._active.set_enabled(name, False))

    def restart(self, name: str) -> int:
        """Reconnects a server, waits until it is connected, and returns the number of its tools."""
        return cast("int", _bridge.block(self._active.restart(name)))

    def login(self, server: str, open: OpenPage = open_page) -> None:
        """Logs in to a server: opens the page, and waits for the user."""
        host = self._active
        _bridge.block_watching(lambda inbox, key: host.login(server, inbox, key), _bridge.watch_with(open))

    def openai_tools(self, *, responses: bool = False) -> list[JsonObject]:
        """The tools as OpenAI's Chat Completions take them, or its Responses."""
        return _format(self.list_tools(), "openai-responses" if responses else "openai")

    def anthropic_tools(self) -> list[JsonObject]:
        """The tools as Anthropic's Messages take them."""
        return _format(self.list_tools(), "anthropic")

    def langchain_tools(self) -> list[StructuredTool]:
        """The tools as LangChain takes them."""

        async def call(name: str, arguments: JsonObject) -> CallResult:
            return CallResult(await _bridge.wait(self._active.call(name, dumps(arguments))))

        return [_langchain_tool(tool, self.call, call) for tool in self.list_tools()]

    def _list(self, kind: Literal["resources", "resource_templates", "prompts"], server: str | None) -> list[JsonObject]:
        return cast("list[JsonObject]", json.loads(_bridge.block(self._active.list(kind, server))))

    def _find_home(self) -> _bridge.Home:
        return _bridge.thread()


class HostEvents(AsyncIterator[HostEvent]):
    """The events of a host, for `async for`."""

    def __init__(self, native: _native.Events) -> None:
        self._native = native

    async def __anext__(self) -> HostEvent:
        text = await _bridge.wait(self._native.next())
        if text is None:
            raise StopAsyncIteration
        return HostEvent(json.loads(text))


class SyncHostEvents(Iterator[HostEvent]):
    """The events of a host, for `for`. Waits for the next one."""

    def __init__(self, native: _native.Events) -> None:
        self._native = native

    def __next__(self) -> HostEvent:
        text = _bridge.block(self._native.next())
        if text is None:
            raise StopIteration
        return HostEvent(json.loads(text))


def entry_of(**entry: Any) -> str:
    """The entry of a server as JSON text, without the keys that were not passed."""
    return dumps({key: value for key, value in entry.items() if value is not None})


def _format(tools: list[Tool], format: str) -> list[JsonObject]:
    return [tool.format(format) for tool in tools]


def _langchain_tool(
    tool: Tool,
    call_sync: Callable[[str, JsonObject], CallResult],
    call_async: Callable[[str, JsonObject], Awaitable[CallResult]],
) -> StructuredTool:
    from langchain_core.tools import StructuredTool, ToolException

    name = tool.name

    def text(result: CallResult) -> tuple[str, CallResult]:
        if result.is_error:
            raise ToolException(result.text)
        return result.text, result

    def run(**arguments: Any) -> tuple[str, CallResult]:
        return text(call_sync(name, arguments))

    async def arun(**arguments: Any) -> tuple[str, CallResult]:
        return text(await call_async(name, arguments))

    return StructuredTool(
        name=name,
        description=tool.description,
        args_schema=tool.input_schema,
        func=run,
        coroutine=arun,
        response_format="content_and_artifact",
    )
