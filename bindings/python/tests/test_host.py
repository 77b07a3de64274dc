"""The host against servers of others: lists, calls, resources, prompts, events."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import Recorder, everything, filesystem, python_sdk, recording

from switchboard_mcp import Host, HostEvent, SyncHost, TimedOutError


async def test_tools_are_listed_and_called(folder: Path) -> None:
    async with Host.from_servers({"files": filesystem(folder)}) as host:
        tools = {tool.tool: tool for tool in await host.list_tools()}
        read = tools["read_text_file"]
        assert (read.name, read.server) == ("mcp__files__read_text_file", "files")
        assert "path" in read.input_schema["properties"]
        assert read.output_schema is not None
        assert read.definition["name"] == "read_text_file"
        assert "contents" in read.description
        assert read.title
        assert repr(read) == "<Tool mcp__files__read_text_file>"

        result = await host.call("files/read_text_file", {"path": str(folder / "one.txt")})
        assert (str(result), result.text, result.is_error) == ("first", "first", False)
        assert result.content == [{"type": "text", "text": "first"}]
        assert result.structured == {"content": "first"}
        assert (result.server, result.tool) == ("files", "read_text_file")
        assert result.elapsed > 0
        assert result.size == len(result.raw.encode())
        by_name = await host.call("mcp__files__read_text_file", {"path": str(folder / "two.txt")})
        assert by_name.text == "second"


def test_the_same_without_an_event_loop(folder: Path) -> None:
    with SyncHost.from_servers({"mcpServers": {"files": filesystem(folder)}}) as host:
        assert "read_text_file" in [tool.tool for tool in host.list_tools("files")]
        assert host.call("files/read_text_file", {"path": str(folder / "one.txt")}).text == "first"
        assert host.search("read a file")[0].tool.server == "files"
        assert host.status()[0].state == "connected"
        assert host.anthropic_tools()[0]["input_schema"]["type"] == "object"
        assert host.openai_tools()[0]["type"] == "function"
        assert host.restart("files") == len(host.list_tools())
        host.disable("files")
        assert host.list_tools() == []
        host.enable("files")
        assert host.add_server("more", **filesystem(folder)) == 14
        assert host.remove_server("more")
        assert not host.remove_server("more")


async def test_servers_as_other_libraries_describe_them(folder: Path) -> None:
    servers = {"files": {"transport": "stdio", **filesystem(folder)}}
    async with Host.from_servers(servers) as host:
        assert len(await host.list_tools()) == 14


async def test_servers_are_added_and_removed(folder: Path) -> None:
    host = await Host()
    entry = filesystem(folder)
    count = await host.add_server("files", transport="stdio", command=entry["command"], args=entry["args"])
    assert count == 14
    assert await host.restart("files") == 14
    await host.disable("files")
    assert host.status()[0].state == "disabled"
    await host.enable("files")
    assert len(await host.list_tools("files")) == 14
    assert await host.remove_server("files")
    assert host.status() == []
    await host.close()


async def test_configuration_of_a_folder(folder: Path) -> None:
    entry = filesystem(folder)
    words = ", ".join(f'"{word}"' for word in entry["args"])
    (folder / "agent.hcl").write_text(
        f'mcp_servers {{\n  name = "files"\n  command = "{entry["command"]}"\n  args = [{words}]\n}}\n'
    )
    async with Host.from_config(folder) as host:
        statuses = {status.name: status for status in host.status()}
        # A file of a folder takes effect when the user has approved it.
        assert "files" in statuses
        assert statuses["files"].reason is not None


async def test_resources_templates_and_prompts() -> None:
    async with Host.from_servers({"all": everything(), "sdk": python_sdk()}) as host:
        resources = await host.resources()
        assert {resource["server"] for resource in resources} == {"all", "sdk"}
        assert [resource["uri"] for resource in await host.resources("sdk")] == ["sdk://greeting"]
        assert await host.resource_templates("all")
        read = await host.read("sdk", "sdk://greeting")
        assert read["contents"][0]["text"] == "Hello"
        assert "simple-prompt" in [prompt["name"] for prompt in await host.prompts("all")]
        prompt = await host.prompt("sdk", "greet", {"name": "Ada"})
        assert "Greet Ada" in str(prompt["messages"])
        assert (await host.call("sdk/add", {"a": 2, "b": 3})).structured == {"result": 5}


async def test_progress_arrives_in_order_before_the_result() -> None:
    async with Host.from_servers({"recording": recording()}) as host:
        told: list[tuple[float, float | None, str | None]] = []

        def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        result = await host.call("recording/progress", on_progress=tell)
        assert result.text == "done"
        assert told == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]
    with SyncHost.from_servers({"recording": recording()}) as plain:
        told.clear()
        plain.call("recording/progress", on_progress=tell)
        assert [step for step, _, _ in told] == [1.0, 2.0, 3.0]


async def test_a_call_that_fails_has_the_reason() -> None:
    async with Host.from_servers({"recording": recording()}) as host:
        result = await host.call("recording/fail")
        assert (result.is_error, result.text) == (True, "it failed")
        assert (await host.call("recording/meta")).meta == {"origin": "test"}
        assert "error" in repr(result)


async def test_events_until_the_host_is_closed() -> None:
    host = await Host.from_servers({"recording": recording()})
    seen: list[HostEvent] = []

    async def collect() -> None:
        async for event in host.events():
            seen.append(event)

    collecting = asyncio.create_task(collect())
    await host.list_tools()
    await host.call("recording/pid")
    await host.close()
    await asyncio.wait_for(collecting, 30)
    ended = [event for event in seen if event.type == "call_end"]
    assert [(event.server, event["tool"], event.is_error) for event in ended] == [("recording", "pid", False)]


def test_events_without_an_event_loop() -> None:
    with SyncHost.from_servers({"recording": recording()}) as host:
        events = host.events()
        host.list_tools()
        for event in events:
            if event.type == "startup_complete":
                assert event.ready == ["recording"]
                break


async def test_search_finds_the_best_tool(folder: Path) -> None:
    async with Host.from_servers({"files": filesystem(folder)}) as host:
        matches = await host.search("move or rename a file", limit=3)
        assert len(matches) == 3
        assert matches[0].tool.tool == "move_file"
        assert matches[0].score >= matches[1].score


async def test_tools_in_the_forms_of_providers(folder: Path) -> None:
    async with Host.from_servers({"files": filesystem(folder)}) as host:
        for definition in await host.openai_tools():
            assert definition["type"] == "function"
            assert set(definition["function"]) == {"name", "description", "parameters"}
        for definition in await host.openai_tools(responses=True):
            assert definition["parameters"]["type"] == "object"
        for definition in await host.anthropic_tools():
            assert set(definition) == {"name", "description", "input_schema"}


async def test_a_timeout_cancels_the_call_at_the_server(recorder: Recorder) -> None:
    async with Host.from_servers({"recording": recording(recorder)}) as host:
        with pytest.raises(TimedOutError) as caught:
            await host.call("recording/hang", timeout=0.2)
        assert caught.value.server == "recording"
        call = recorder.until("hangs ")
        assert recorder.until("cancelled ") == call
        with pytest.raises(TimeoutError):
            await host.call("recording/hang", total_timeout=0.2)
        with pytest.raises(ValueError, match="negative"):
            await host.call("recording/hang", timeout=-1)


async def test_a_cancelled_task_cancels_the_call_at_the_server(recorder: Recorder) -> None:
    async with Host.from_servers({"recording": recording(recorder)}) as host:
        call = asyncio.create_task(host.call("recording/hang"))
        number = await asyncio.to_thread(recorder.until, "hangs ")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(recorder.until, "cancelled ") == number
        # The server is still usable.
        assert (await host.call("recording/fail")).text == "it failed"


async def test_calls_share_one_server_process() -> None:
    """langchain-mcp-adapters #207: every call starts a new session."""
    async with Host.from_servers({"recording": recording()}) as host:
        results = await asyncio.gather(*(host.call("recording/pid") for _ in range(64)))
        assert {result.text for result in results} == {str(host.status()[0].pid)}


async def test_one_dead_server_does_not_fail_the_rest(folder: Path) -> None:
    """langchain-mcp-adapters #401: a server that cannot be reached fails the list of all."""
    servers = {"dead": {"command": "no-such-program-here"}, "files": filesystem(folder)}
    async with Host.from_servers(servers) as host:
        assert {tool.server for tool in await host.list_tools()} == {"files"}
        status = {status.name: status for status in host.status()}
        assert (status["dead"].state, status["files"].state) == ("failed", "connected")
        assert status["dead"].reason


async def test_a_large_result_is_converted_when_it_is_accessed() -> None:
    async with Host.from_servers({"recording": recording()}) as host:
        result = await host.call("recording/big")
        assert result.size > 10_000_000
        assert result._parsed is None  # pyright: ignore[reportPrivateUsage]
        assert len(result.text) == 10_000_000
        assert result._parsed is None  # pyright: ignore[reportPrivateUsage]
        assert len(result.content[0]["text"]) == 10_000_000
        assert result.content is result.content
