"""What servers and the permission gate ask, and tools that the program implements."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import threading
import time
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest
from conftest import everything

from switchboard_mcp import ApprovalQuestion, DeniedError, Host, InvalidArgumentsError, SyncHost


async def test_an_elicitation_is_answered() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(server: str, params: dict[str, Any]) -> dict[str, Any]:
        asked.append((server, params))
        return {"action": "accept", "content": {"name": "Ada", "check": True}}

    async with Host.from_servers({"all": everything()}, on_elicitation=answer) as host:
        result = await host.call("all/trigger-elicitation-request")
        assert "Ada" in result.text
        assert asked[0][0] == "all"
        assert "name" in asked[0][1]["requestedSchema"]["properties"]


async def test_a_plain_function_answers_a_sampling_request_in_a_thread() -> None:
    threads: list[int] = []

    def answer(server: str, params: dict[str, Any]) -> dict[str, Any]:
        threads.append(threading.get_ident())
        text = f"You said: {params['messages'][0]['content']['text']}"
        return {"role": "assistant", "model": "test", "content": {"type": "text", "text": text}}

    async with Host.from_servers({"all": everything()}, on_sampling=answer) as host:
        result = await host.call("all/trigger-sampling-request", {"prompt": "hello"})
        assert "You said: " in result.text
        assert "hello" in result.text
    assert threads
    assert threading.get_ident() not in threads


async def test_roots_are_listed() -> None:
    async with Host.from_servers({"all": everything()}, on_roots=lambda server: [f"file:///of/{server}"]) as host:
        result = await host.call("all/get-roots-list")
        assert "file:///of/all" in result.text


async def test_a_failing_callback_is_an_error_for_the_server() -> None:
    def answer(server: str, params: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("not today")

    async with Host.from_servers({"all": everything()}, on_sampling=answer) as host:
        result = await host.call("all/trigger-sampling-request", {"prompt": "hello"})
        assert result.is_error
        assert "ValueError: not today" in result.text


def ask_rule(folder: Path) -> None:
    """The user's configuration: calls of the tool `add` require approval."""
    settings = folder / ".config" / "switchboard"
    settings.mkdir(parents=True)
    (settings / "mcp.toml").write_text('[[permissions.rules]]\ntool = "mcp__local__add"\naction = "ask"\n')


@pytest.mark.parametrize("answer", [True, "once", False, None])
async def test_a_call_that_requires_approval(user: Path, tmp_path: Path, answer: bool | str | None) -> None:
    ask_rule(user)
    questions: list[ApprovalQuestion] = []

    async def approve(question: ApprovalQuestion) -> bool | str | None:
        questions.append(question)
        return answer

    async with Host.from_config(tmp_path, on_approval=approve) as host:

        @host.tool
        def add(a: int, b: int) -> int:
            return a + b

        if answer:
            assert (await host.call("local/add", {"a": 1, "b": 2})).text == "3"
        else:
            with pytest.raises(DeniedError):
                await host.call("local/add", {"a": 1, "b": 2})
        assert (questions[0]["tool"], questions[0]["arguments"]) == ("add", {"a": 1, "b": 2})


async def test_without_a_callback_approval_is_denied(user: Path, tmp_path: Path) -> None:
    ask_rule(user)
    host = Host.from_config(tmp_path)

    @host.tool
    def add() -> None: ...

    async with host:
        with pytest.raises(DeniedError) as caught:
            await host.call("local/add")
        assert isinstance(caught.value, PermissionError)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0


class Options(TypedDict):
    deep: bool


class Order(pydantic.BaseModel):
    item: str
    count: int = 1


async def test_own_tools_are_described_by_their_type_hints() -> None:
    host = Host()

    @host.tool
    async def paint(
        where: Point,
        color: Color,
        size: Annotated[int, "In pixels"] = 3,
        mode: Literal["fill", "line"] = "fill",
        tags: list[str] | None = None,
        options: Options | None = None,
    ) -> dict[str, Any]:
        """Paints.

        Args:
            where: The position.
            color: The color.
        """
        assert isinstance(where, Point)
        assert isinstance(color, Color)
        return {"at": where.x + where.y, "color": color, "size": size, "mode": mode, "tags": tags, "options": options}

    async with host:
        (tool,) = await host.list_tools()
        assert tool.description == "Paints."
        assert tool.definition["inputSchema"] == {
            "type": "object",
            "properties": {
                "where": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0}},
                    "required": ["x"],
                    "additionalProperties": False,
                    "description": "The position.",
                },
                "color": {"enum": ["red", "blue"], "type": "string", "description": "The color."},
                "size": {"type": "integer", "description": "In pixels", "default": 3},
                "mode": {"enum": ["fill", "line"], "default": "fill"},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
                "options": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {"deep": {"type": "boolean"}},
                            "required": ["deep"],
                            "additionalProperties": False,
                        },
                        {"type": "null"},
                    ],
                    "default": None,
                },
            },
            "required": ["where", "color"],
            "additionalProperties": False,
        }
        arguments = {"where": {"x": 1, "y": 2}, "color": "red", "options": {"deep": True}}
        result = await host.call("local/paint", arguments)
        assert result.structured == {
            "at": 3.0,
            "color": "red",
            "size": 3,
            "mode": "fill",
            "tags": None,
            "options": {"deep": True},
        }
        with pytest.raises(InvalidArgumentsError):
            await host.call("local/paint", {"where": {"x": 1}, "color": "green"})


async def test_own_tools_with_a_schema_of_their_own() -> None:
    async with Host() as host:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

        @host.tool(name="shout", description="Shouts.", schema=schema)
        def upper(text: str) -> str:
            return text.upper()

        assert (await host.call("local/shout", {"text": "hi"})).text == "HI"
        assert upper("direct") == "DIRECT"

        # A tool that is added later replaces the first.
        def exclaim(text: str) -> str:
            return text + "!"

        host.tool(name="shout", schema=schema)(exclaim)
        assert (await host.call("local/shout", {"text": "hi"})).text == "hi!"


async def test_own_tools_declare_what_they_do() -> None:
    async with Host() as host:

        @host.tool(title="Find it", read_only=True, destructive=False, idempotent=True, open_world=False)
        def find() -> None: ...

        @host.tool(destructive=True)
        def delete() -> None: ...

        @host.tool
        def plain() -> None: ...

        definitions = {tool.tool: tool.definition for tool in await host.list_tools()}
        assert definitions["find"]["title"] == "Find it"
        assert definitions["find"]["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert definitions["delete"]["annotations"] == {"destructiveHint": True}
        assert not {"title", "annotations"} & set(definitions["plain"])
        (found,) = [tool for tool in await host.list_tools() if tool.tool == "find"]
        assert found.title == "Find it"


async def test_a_tool_added_later_is_listed_at_once() -> None:
    async with Host() as host:
        begun = time.monotonic()
        for count in range(1, 9):
            host.tool(name=f"tool_{count}", schema={"type": "object"})(lambda: None)
            assert len(await host.list_tools()) == count
        # Change notifications would be rate limited: 100 ms, 200 ms, 400 ms, ...
        assert time.monotonic() - begun < 1


async def test_pydantic_models_are_arguments() -> None:
    async with Host() as host:

        @host.tool
        async def buy(order: Order) -> Order:
            return order.model_copy(update={"count": order.count + 1})

        result = await host.call("local/buy", {"order": {"item": "book"}})
        assert result.structured == {"item": "book", "count": 2}


async def test_an_exception_of_a_tool_is_a_failure_of_the_call() -> None:
    async with Host() as host:

        @host.tool
        def fail() -> None:
            raise RuntimeError("broken")

        result = await host.call("local/fail")
        assert (result.is_error, result.text) == (True, "RuntimeError: broken")


async def test_a_tool_is_cancelled_with_its_call() -> None:
    async with Host() as host:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        @host.tool
        async def hang() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        call = asyncio.create_task(host.call("local/hang"))
        await asyncio.wait_for(begun.wait(), 30)
        call.cancel()
        await asyncio.wait_for(cancelled.wait(), 30)
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_own_tools_call_tools() -> None:
    async with Host() as host:

        @host.tool
        async def inner(value: int) -> int:
            return value + 1

        @host.tool
        async def outer(value: int) -> str:
            return (await host.call("local/inner", {"value": value})).text

        assert (await host.call("local/outer", {"value": 1})).text == "2"


def test_own_tools_without_an_event_loop() -> None:
    host = SyncHost()
    main = threading.get_ident()

    @host.tool
    def where() -> bool:
        return threading.get_ident() == main

    @host.tool
    async def later() -> str:
        await asyncio.sleep(0)
        return host.call("local/where").text

    with host:
        assert host.call("local/where").text == "false"
        assert host.call("local/later").text == "false"


def test_a_type_without_a_schema_is_refused_at_once() -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = complex
    with pytest.raises(TypeError, match="parameter value: no schema for the type complex; pass schema="):
        Host().tool(tool)
