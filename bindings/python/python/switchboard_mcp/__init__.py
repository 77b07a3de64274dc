"""An MCP host and an agent: connects to servers, and calls their tools.

```python
async with Host.from_config(".") as host:
    print(await host.call("files/read_text_file", {"path": "README.md"}))
```
"""

from typing import TYPE_CHECKING

from switchboard_mcp._agent import Agent, AsyncAgent, AsyncSession, AsyncTurn, Session, Turn
from switchboard_mcp._errors import (
    CauseError,
    ClosedError,
    ConnectionLostError,
    DeniedError,
    ForkedError,
    InternalError,
    InvalidArgumentsError,
    InvalidConfigurationError,
    InvalidServerError,
    ModelError,
    NeedsLoginError,
    NotFoundError,
    OperationCancelledError,
    RefusedError,
    SwitchboardError,
    TimedOutError,
    UnavailableError,
    UnexpectedResultError,
)
from switchboard_mcp._handlers import (
    ApprovalAnswer,
    ApprovalOffer,
    ApprovalQuestion,
    Hook,
    HookAnswer,
    HookCall,
    Hooks,
    OnApproval,
    OnElicitation,
    OnRoots,
    OnSampling,
)
from switchboard_mcp._host import Host, HostEvents, OnProgress, SyncHost, SyncHostEvents
from switchboard_mcp._native import VERSION as __version__
from switchboard_mcp._native import Tool
from switchboard_mcp._types import CallResult, HostEvent, ToolMatch, TurnEvent

if TYPE_CHECKING:
    from switchboard_mcp._records import Cost, FailedServer, Reply, ServerStatus, StoredSession, ToolCall, Usage

__all__ = [
    "Agent",
    "ApprovalAnswer",
    "ApprovalOffer",
    "ApprovalQuestion",
    "AsyncAgent",
    "AsyncSession",
    "AsyncTurn",
    "CallResult",
    "CauseError",
    "ClosedError",
    "ConnectionLostError",
    "Cost",
    "DeniedError",
    "FailedServer",
    "ForkedError",
    "Hook",
    "HookAnswer",
    "HookCall",
    "Hooks",
    "Host",
    "HostEvent",
    "HostEvents",
    "InternalError",
    "InvalidArgumentsError",
    "InvalidConfigurationError",
    "InvalidServerError",
    "ModelError",
    "NeedsLoginError",
    "NotFoundError",
    "OnApproval",
    "OnElicitation",
    "OnProgress",
    "OnRoots",
    "OnSampling",
    "OperationCancelledError",
    "RefusedError",
    "Reply",
    "ServerStatus",
    "Session",
    "StoredSession",
    "SwitchboardError",
    "SyncHost",
    "SyncHostEvents",
    "TimedOutError",
    "Tool",
    "ToolCall",
    "ToolMatch",
    "Turn",
    "TurnEvent",
    "UnavailableError",
    "UnexpectedResultError",
    "Usage",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Imports the dataclasses on first use."""
    if name in ("Cost", "FailedServer", "Reply", "ServerStatus", "StoredSession", "ToolCall", "Usage"):
        from switchboard_mcp import _records

        return getattr(_records, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
