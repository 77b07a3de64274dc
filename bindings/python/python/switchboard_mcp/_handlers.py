"""The functions that a program passes to a host: answers to questions, and tools."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

from switchboard_mcp._json import dumps
from switchboard_mcp._native import Callbacks, Inbox, Question

JsonObject: TypeAlias = dict[str, Any]


class ApprovalOffer(TypedDict):
    """What a call can be allowed until the program exits."""

    name: str
    words: str


class ApprovalQuestion(TypedDict):
    """A call that requires approval: as it will be sent, and as text to show."""

    name: str
    server: str | None
    tool: str
    arguments: Any
    because: str
    remark: str | None
    text: str
    offers: list[ApprovalOffer]


#: `True` or `"once"` allows the call, `"session"` the first offer, `{"grant": index}` an offer; all else denies.
ApprovalAnswer: TypeAlias = "bool | str | dict[str, int] | None"
OnElicitation: TypeAlias = "Callable[[str, JsonObject], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]"
OnSampling: TypeAlias = "Callable[[str, JsonObject], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]"
OnRoots: TypeAlias = "Callable[[str], Mapping[str, Any] | list[str] | Awaitable[Mapping[str, Any] | list[str]]]"
OnApproval: TypeAlias = "Callable[[ApprovalQuestion], ApprovalAnswer | Awaitable[ApprovalAnswer]]"


class HookCall(TypedDict):
    """A call that a hook inspects."""

    event: Literal["before_call", "after_call"]
    #: Unique in the host, and the same before and after.
    call: str
    #: The session of the agent that makes the call, or that of the program.
    session: str
    #: The name that a model calls.
    name: str
    server: str | None
    tool: str
    #: With what earlier hooks changed.
    arguments: Any
    #: As the server sent it, with what earlier hooks changed; `None` before the call.
    result: JsonObject | None


class HookAnswer(TypedDict, total=False):
    """What a hook does about a call. Without a key, the call stays as it is."""

    #: `block` ends the call, or withholds its result. `ask` requires approval, `allow` needs none.
    decision: Literal["allow", "ask", "block"]
    reason: str
    #: The arguments to send instead.
    arguments: Mapping[str, Any]
    #: The result to return instead, in the form of the protocol.
    result: Mapping[str, Any]


#: Inspects a call. An exception blocks it.
Hook: TypeAlias = "Callable[[HookCall], HookAnswer | None | Awaitable[HookAnswer | None]]"
#: A hook for all calls, or hooks by the tools that they cover: patterns as in permission rules.
Hooks: TypeAlias = "Hook | Mapping[str, Hook]"

#: Runs a plain function in another thread.
RunPlain: TypeAlias = "Callable[[Callable[[], Any]], Awaitable[Any]]"

_last_number = 0
_lock = threading.Lock()
_by_number: weakref.WeakValueDictionary[int, Handlers] = weakref.WeakValueDictionary()


def forked() -> None:
    """Another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


def find(number: int) -> Handlers | None:
    """The functions of a host that still exists."""
    return _by_number.get(number)


class Handlers:
    """The functions of one host."""

    def __init__(
        self,
        on_elicitation: OnElicitation | None,
        on_sampling: OnSampling | None,
        on_roots: OnRoots | None,
        on_approval: OnApproval | None,
        on_before_call: Hooks | None,
        on_after_call: Hooks | None,
        hook_timeout: float | None,
    ) -> None:
        questions: dict[str, Callable[..., Any] | None] = {
            "elicitation": on_elicitation,
            "sampling": on_sampling,
            "roots": on_roots,
            "approval": on_approval,
        }
        self.questions = {name: function for name, function in questions.items() if function is not None}
        #: Event, tools and function of each hook.
        self.hooks: list[tuple[str, str, Hook]] = []
        for event, hooks in (("before_call", on_before_call), ("after_call", on_after_call)):
            given: Any = hooks
            by_tool: Mapping[str, Hook | None] = given if isinstance(hooks, Mapping) else {"*": given}
            self.hooks += [(event, tool, hook) for tool, hook in by_tool.items() if hook is not None]
        self.hook_timeout = hook_timeout
        self.tools: dict[str, OwnTool] = {}
        global _last_number
        # Not a shared iterator, which free-threaded Python may advance in two threads at once.
        with _lock:
            _last_number += 1
            self.number = _last_number
        _by_number[self.number] = self

    def callbacks(self, inbox: Inbox) -> Callbacks:
        return Callbacks(self.number, inbox)

    @property
    def answered(self) -> JsonObject:
        """What the native module can ask."""
        return {
            "questions": list(self.questions),
            "hooks": [(event, tool) for event, tool, _ in self.hooks],
            "hook_timeout": self.hook_timeout,
        }

    @property
    def is_empty(self) -> bool:
        return not self.questions and not self.hooks and not self.tools

    async def answer(self, is_tool: bool, question: Question, run_plain: RunPlain) -> None:
        """Answers a question. The asker gets an exception as an error."""
        try:
            function = self._tool(question) if is_tool else self._question(question)
            if function.is_async:
                result = await function.call()
            else:
                result = await run_plain(function.call)
                if hasattr(result, "__await__"):
                    result = await result
            question.resolve(dumps(function.convert(result)))
        except Exception as error:
            question.reject(f"{type(error).__name__}: {error}")

    def _tool(self, question: Question) -> _Call:
        tool = self.tools[question.name]
        arguments = tool.bind(json.loads(question.payload))
        return _Call(lambda: tool.function(**arguments), is_async(tool.function))

    def _question(self, question: Question) -> _Call:
        payload = json.loads(question.payload)
        kind, _, index = question.name.partition(" ")
        if kind == "hook":
            hook = self.hooks[int(index)][2]
            return _Call(lambda: hook(payload), is_async(hook))
        function = self.questions[question.name]
        if question.name == "approval":
            return _Call(lambda: function(payload), is_async(function))
        if question.name == "roots":
            return _Call(lambda: function(payload["server"]), is_async(function), _roots)
        return _Call(lambda: function(payload["server"], payload["params"]), is_async(function))


class OwnTool:
    """A tool that the program implements."""

    def __init__(self, definition: JsonObject, function: Callable[..., Any], bind: Callable[[JsonObject], JsonObject]) -> None:
        self.definition = definition
        self.function = function
        self.bind = bind


class _Call:
    def __init__(self, call: Callable[[], Any], is_async: bool, convert: Callable[[Any], Any] = lambda result: result) -> None:
        self.call = call
        self.is_async = is_async
        self.convert = convert


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or an object that can be called, is asynchronous."""
    import inspect

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def _roots(answer: Any) -> Any:
    """A list of addresses is a short form of the protocol's result."""
    if isinstance(answer, list):
        return {"roots": [{"uri": uri} for uri in answer]}  # pyright: ignore[reportUnknownVariableType]
    return answer
