"""Results, matches and events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from switchboard_mcp import _native
from switchboard_mcp._native import Tool

if TYPE_CHECKING:
    from switchboard_mcp._records import Reply, ServerStatus, StoredSession, Usage

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


def statuses(text: str) -> list[ServerStatus]:
    """The statuses in JSON text."""
    from switchboard_mcp import _records

    return _records.statuses(text)


def sessions(text: str) -> list[StoredSession]:
    """The stored sessions in JSON text."""
    from switchboard_mcp import _records

    return _records.sessions(text)


def usage(text: str) -> Usage:
    """The token counts in JSON text."""
    from switchboard_mcp import _records

    return _records.usage(text)


def reply(text: str) -> Reply:
    """The reply in JSON text."""
    from switchboard_mcp import _records

    return _records.reply(text)
