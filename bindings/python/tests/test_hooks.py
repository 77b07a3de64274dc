"""Functions that inspect calls before and after they are made."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from conftest import PATIENCE, recording
from scripted import ScriptedModel, call

from switchboard_mcp import (
    Agent,
    DeniedError,
    Hook,
    HookAnswer,
    HookCall,
    Host,
    InvalidConfigurationError,
    SyncHost,
)

HIDDEN: HookAnswer = {"result": {"content": [{"type": "text", "text": "hidden"}]}}


async def test_hooks_observe_every_call() -> None:
    seen: list[HookCall] = []

    async def before(call: HookCall) -> None:
        seen.append(call)

    def after(call: HookCall) -> None:
        seen.append(call)

    servers = {"recording": recording()}
    async with Host.from_servers(servers, on_before_call=before, on_after_call=after) as host:
        result = await host.call("recording/echo", {"value": 1})
    first, second = seen
    assert (first["event"], second["event"]) == ("before_call", "after_call")
    assert first["call"] == second["call"]
    for inspected in seen:
        assert (inspected["name"], inspected["server"], inspected["tool"]) == (
            "mcp__recording__echo",
            "recording",
            "echo",
        )
        assert inspected["arguments"] == {"value": 1}
    assert first["result"] is None
    assert second["result"] is not None
    assert second["result"]["content"] == result.content


async def test_hooks_change_arguments_and_results() -> None:
    def add_one(call: HookCall) -> HookAnswer:
        return {"arguments": {**call["arguments"], "value": call["arguments"]["value"] + 1}}

    async def hide(call: HookCall) -> HookAnswer:
        return HIDDEN

    host = Host(on_before_call=add_one, on_after_call={"mcp__local__secret": hide})

    @host.tool
    def same(value: int) -> int:
        return value

    @host.tool
    def secret(value: int) -> int:
        return value

    async with host:
        assert (await host.call("local/same", {"value": 1})).text == "2"
        assert (await host.call("local/secret", {"value": 1})).text == "hidden"


async def test_hooks_run_in_order_for_the_tools_that_they_cover() -> None:
    seen: list[str] = []

    def note(name: str) -> Hook:
        def hook(call: HookCall) -> None:
            seen.append(f"{name} {call['tool']}")

        return hook

    hooks = {"mcp__local__*": note("all"), "mcp__local__one|Bash": note("one"), "mcp__other": note("other")}
    async with Host(on_before_call=hooks) as host:

        @host.tool
        def one() -> None: ...

        @host.tool
        def two() -> None: ...

        await host.call("local/one")
        await host.call("local/two")
    assert seen == ["all one", "one one", "all two"]


async def blocks(call: HookCall) -> HookAnswer:
    return {"decision": "block", "reason": "not now"}


def fails(call: HookCall) -> HookAnswer:
    raise ValueError("not today")


async def hangs(call: HookCall) -> HookAnswer:
    await asyncio.Event().wait()
    return {}


def returns_something_else(call: HookCall) -> Any:
    return False


@pytest.mark.parametrize("when", ["on_before_call", "on_after_call"])
@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (blocks, "not now"),
        (fails, "failed: ValueError: not today"),
        (hangs, "timed out after 0.1 seconds"),
        (returns_something_else, "returned something other than a JSON object"),
    ],
)
async def test_a_hook_blocks_when_it_says_so_and_when_it_fails(when: str, hook: Any, reason: str) -> None:
    called: list[str] = []
    options: dict[str, Any] = {when: hook}
    async with Host(hook_timeout=0.1, **options) as host:

        @host.tool
        def work() -> str:
            called.append("work")
            return "done"

        with pytest.raises(DeniedError, match=reason):
            await host.call("local/work")
    assert called == ([] if when == "on_before_call" else ["work"])


def test_hooks_without_an_event_loop() -> None:
    threads: list[int] = []

    def plain(call: HookCall) -> None:
        threads.append(threading.get_ident())

    async def later(call: HookCall) -> HookAnswer:
        await asyncio.sleep(0)
        return HIDDEN

    with SyncHost(on_before_call=plain, on_after_call=later) as host:

        @host.tool
        def work() -> str:
            return "done"

        assert host.call("local/work").text == "hidden"
    assert threads and threading.get_ident() not in threads


def test_hooks_under_trio() -> None:
    async def hide(call: HookCall) -> HookAnswer:
        await trio.lowlevel.checkpoint()
        return HIDDEN

    async def main() -> str:
        async with Host.from_servers({"recording": recording()}, on_after_call=hide) as host:
            return (await host.call("recording/pid")).text

    assert trio.run(main) == "hidden"


async def test_a_hook_is_cancelled_with_its_call() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(call: HookCall) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with Host(on_before_call=hang) as host:

        @host.tool
        def work() -> None: ...

        task = asyncio.create_task(host.call("local/work"))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        task.cancel()
        await asyncio.wait_for(cancelled.wait(), PATIENCE)


async def test_a_pattern_that_cannot_be_used() -> None:
    with pytest.raises(InvalidConfigurationError, match="mcp__{a"):
        await Host(on_before_call={"mcp__{a": fails})


def test_hooks_inspect_the_calls_of_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def before(call: HookCall) -> HookAnswer | None:
        seen.append((call["name"], call["session"]))
        if call["name"] == "Bash":
            return {"decision": "block", "reason": "no commands here"}
        return {"decision": "allow"}

    with ScriptedModel(call("mcp__local__double", value=4), call("Bash", command="ls"), "It is 8.") as model:
        for name, value in model.environment().items():
            monkeypatch.setenv(name, value)
        with Agent.create(folder, on_before_call=before) as agent:

            @agent.host.tool
            def double(value: int) -> int:
                """Doubles a number."""
                return value * 2

            session = agent.session(folder)
            reply = session.send("What is twice 4?")
    # The first call needed no approval, since the hook allows it.
    assert [made.is_error for made in reply.tool_calls] == [False, True]
    assert seen == [("mcp__local__double", session.id), ("Bash", session.id)]
    assert "no commands here" in str(model.requests[2]["messages"])
