"""What operations return."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from switchboard_mcp import _native
from switchboard_mcp._native import Tool

#: The state of a server.
ServerState: TypeAlias = Literal["disabled", "lazy", "pending", "connected", "idle", "failed", "needs-auth"]

#: The types of the events of a host.
HostEventType: TypeAlias = Literal[
    "startup_update",
    "startup_complete",
    "installing",
    "state_changed",
    "removed",
    "catalog_changed",
    "tools_pinned",
    "pins_differ",
    "suspicious",
    "resource_updated",
    "call_begin",
    "call_progress",
    "call_end",
    "log",
    "auth_needed",
    "logged_in",
    "lagged",
]

#: The types of the events of a turn. `ended` is the last one.
TurnEventType: TypeAlias = Literal[
    "startup_update",
    "startup_complete",
    "started",
    "text",
    "thinking",
    "retrying",
    "call_begins",
    "call_progress",
    "call_ends",
    "tools_changed",
    "compacted",
    "usage",
    "notice",
    "ended",
]

#: Why a turn ended.
EndReason: TypeAlias = Literal["done", "refused", "length", "turn_budget", "token_budget"]

EventType = TypeVar("EventType", bound=str)


class CallResult:
    """The result of a call, as the server sent it. Nothing is converted before it is accessed."""

    __slots__ = ("_native", "_parsed")

    def __init__(self, native: _native.CallResult) -> None:
        self._native = native
        self._parsed: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text of the result, one block per line. Without text, the structured content as JSON."""
        return self._native.text

    @property
    def content(self) -> list[dict[str, Any]]:
        """The content blocks in the form of the protocol: text, images, audio, resources."""
        content = self._object.get("content")
        return cast("list[dict[str, Any]]", content) if isinstance(content, list) else []

    @property
    def structured(self) -> Any:
        """The structured content; `None` if the tool returned none."""
        return self._object.get("structuredContent")

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata of the result."""
        meta = self._object.get("_meta")
        return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}

    @property
    def raw(self) -> str:
        """The whole result, as JSON text."""
        return self._native.raw

    @property
    def size(self) -> int:
        """The length of the whole result in bytes."""
        return self._native.size

    @property
    def is_error(self) -> bool:
        """Whether the tool reports a failure. The text then contains the reason."""
        return self._native.is_error

    @property
    def server(self) -> str | None:
        """The server that was called."""
        return self._native.server

    @property
    def tool(self) -> str:
        """The tool's name on its server."""
        return self._native.tool

    @property
    def elapsed(self) -> float:
        """Seconds since the call was permitted."""
        return self._native.elapsed

    @property
    def _object(self) -> dict[str, Any]:
        if self._parsed is None:
            self._parsed = cast("dict[str, Any]", json.loads(self.raw))
        return self._parsed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        error = " error" if self.is_error else ""
        return f"<CallResult of {self.tool}:{error} {self.size} bytes>"


class ToolMatch(NamedTuple):
    """A tool that a search found."""

    tool: Tool
    score: float


@dataclass(frozen=True)
class ServerStatus:
    """The status of a server, with reason and remedy."""

    name: str
    state: ServerState
    reason: str | None
    remedy: str | None
    transport: str | None
    required: bool
    tools: int
    protocol_version: str | None
    restarts: int
    latency_ms: float | None
    startup_ms: float | None
    pid: int | None
    #: Seconds since 1970 when the state began.
    since: float


class _Event(dict[str, Any], Generic[EventType]):
    """A dictionary with the facts of an event, also as attributes. Facts that an event lacks are `None`."""

    @property
    def type(self) -> EventType:
        """What happened."""
        return cast("EventType", self["type"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


class HostEvent(_Event[HostEventType]):
    """Something that happened in a host."""


class TurnEvent(_Event[TurnEventType]):
    """Something that happened in a turn."""


@dataclass(frozen=True)
class Usage:
    """Token counts of one or more answers."""

    #: Input tokens that were neither read from nor written to the cache.
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    #: Output tokens, including reasoning.
    output: int = 0
    #: Whether any count is an estimate, because the endpoint reported none.
    is_estimate: bool = False

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self.input + self.cache_read + self.cache_write + self.output


@dataclass(frozen=True)
class ToolCall:
    """A tool call of a turn."""

    id: str
    #: The tool's name as the model wrote it.
    name: str
    #: `None` if they were not valid JSON.
    arguments: Any
    is_error: bool
    elapsed_ms: int


@dataclass(frozen=True)
class FailedServer:
    """A server that was unavailable in a turn."""

    name: str
    state: str
    reason: str
    #: The last lines of its standard error, oldest first.
    stderr: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Reply:
    """The result of a turn. As a string, the text of the answer."""

    session_id: str
    response: str
    tool_calls: list[ToolCall]
    usage: Usage
    reason: EndReason
    failed_servers: list[FailedServer]

    def __str__(self) -> str:
        return self.response


@dataclass(frozen=True)
class StoredSession:
    """A session that can be resumed."""

    id: str
    workspace: str
    title: str
    messages: int


def statuses(text: str) -> list[ServerStatus]:
    return [ServerStatus(**status) for status in json.loads(text)]


def reply(text: str) -> Reply:
    value = json.loads(text)
    return Reply(
        session_id=value["session_id"],
        response=value["response"],
        tool_calls=[ToolCall(**call) for call in value["tool_calls"]],
        usage=Usage(**value["usage"]),
        reason=value["reason"],
        failed_servers=[FailedServer(**server) for server in value["failed_servers"]],
    )
