"""Statuses and replies, as dataclasses.

Imported on first use: `dataclasses` and what it imports take longer than the rest of this package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

#: The state of a server.
ServerState: TypeAlias = Literal["disabled", "lazy", "pending", "connected", "idle", "failed", "needs-auth"]

#: Why a turn ended.
EndReason: TypeAlias = Literal["done", "refused", "length", "turn_budget", "token_budget"]


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


@dataclass(frozen=True)
class Cost:
    """What answers cost, at list prices."""

    #: The amount in US dollars.
    usd: float
    #: The day on which the prices were checked, as YYYY-MM-DD.
    as_of: str
    #: Whether tokens of a model without a known price are missing.
    is_partial: bool = False


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
    #: `None` if no price is known.
    cost: Cost | None = None

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


def sessions(text: str) -> list[StoredSession]:
    return [StoredSession(**stored) for stored in json.loads(text)]


def usage(text: str) -> Usage:
    return _usage(json.loads(text))


def _usage(value: dict[str, Any]) -> Usage:
    cost = value.pop("cost", None)
    return Usage(**value, cost=Cost(**cost) if cost else None)


def reply(text: str) -> Reply:
    value = json.loads(text)
    return Reply(
        session_id=value["session_id"],
        response=value["response"],
        tool_calls=[ToolCall(**call) for call in value["tool_calls"]],
        usage=_usage(value["usage"]),
        reason=value["reason"],
        failed_servers=[FailedServer(**server) for server in value["failed_servers"]],
    )
