"""The agent with a scripted model and the reference server for files."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import NODE, PACKAGES, PATIENCE, Recorder, RunProgram, filesystem, recording
from scripted import ScriptedModel, call

from switchboard_mcp import (
    Agent,
    ApprovalQuestion,
    AsyncAgent,
    HookCall,
    InvalidArgumentsError,
    ModelError,
    OperationCancelledError,
    UnavailableError,
)

#: The program of the A3S document, but for the name of the package and the address; the end prints. The document leaves
#: out the import of `os`.
DOCUMENTED = """
import os
from switchboard_mcp import Agent

agent = Agent.create("agent.hcl")
session = agent.session(".")

# stdio server
tool_count = session.add_mcp_server(
    "filesystem",
    transport="stdio",
    command="npx",
    args=["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
)
print(f"Registered {tool_count} tools")

# Streamable HTTP server
session.add_mcp_server(
    "remote",
    transport="streamable-http",
    url="ADDRESS",
    headers={"Authorization": f"Bearer {os.environ['API_TOKEN']}"},
)

result = session.send("List files in /tmp")
print(result, len(result.tool_calls), len(result.failed_servers))
"""


AGENT = """
default_model = "openai/scripted"

providers {
  name = "openai"
}
"""


def allow(user: Path, tools: str) -> None:
    """The user's configuration: a model may call these tools without approval."""
    settings = user / ".config" / "switchboard"
    settings.mkdir(parents=True)
    (settings / "mcp.toml").write_text(f'[[permissions.rules]]\ntool = "{tools}"\naction = "allow"\n')


def test_the_program_of_the_a3s_document(folder: Path, run_program: RunProgram, remote_server: str) -> None:
    (folder / "agent.hcl").write_text(AGENT)
    # In place of npx, which would need a network: the same server.
    npx = folder / "npx"
    npx.write_text(f'#!/bin/sh\nexec {NODE} {PACKAGES}/server-filesystem/dist/index.js "$3"\n')
    npx.chmod(0o755)
    answers = (call("mcp__filesystem__list_directory", path="/tmp"), "There are files.")
    with ScriptedModel(*answers) as model:
        program = f"import os\nos.chdir({str(folder)!r})\n{DOCUMENTED.replace('ADDRESS', remote_server)}"
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        ended = run_program(program, PATH=path, API_TOKEN="secret", **model.environment())
    assert (ended.stdout, ended.stderr) == ("Registered 14 tools\nThere are files. 1 0\n", "")
    assert ended.returncode == 0
    sent = [message for message in model.requests[1]["messages"] if message["role"] == "tool"]
    assert sent and "denied" not in str(sent)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """Not started; its answers are set by the test."""
    model = ScriptedModel()
    for name, value in model.environment().items():
        monkeypatch.setenv(name, value)
    return model


def test_send_stream_and_resume(folder: Path, model: ScriptedModel) -> None:
    path = str(folder / "one.txt")
    model.answers = [call("mcp__files__read_text_file", path=path), "It says first.", "Hello there.", "Still here."]
    with model, Agent.create(folder) as agent:
        session = agent.session(folder)
        assert session.workspace == folder.resolve()
        assert session.add_mcp_server("files", **filesystem(folder)) == 14
        assert [status.name for status in agent.host.status()] == ["files"]

        reply = session.send("What is in one.txt?")
        assert str(reply) == reply.response == "It says first."
        assert [(made.name, made.arguments, made.is_error) for made in reply.tool_calls] == [
            ("mcp__files__read_text_file", {"path": path}, False)
        ]
        assert (reply.reason, reply.failed_servers, reply.session_id) == ("done", [], session.id)
        assert reply.usage.total == 30

        events = list(session.stream("Hello"))
        assert "".join(event.text for event in events if event.type == "text") == "Hello there."
        assert events[-1].type == "ended"
        assert events[-1].response == "Hello there."
        assert session.usage().total == 45
        roles = [message["role"] for message in session.messages()]
        assert (roles[0], roles[-1]) == ("user", "assistant")

        stored = agent.sessions()
        assert session.id in [known.id for known in stored]
        resumed = agent.resume(session.id)
        assert len(resumed.messages()) == len(roles)
        assert resumed.send("And now?").response == "Still here."
        assert agent.delete(session.id)
        assert not agent.delete("missing")
    agent.close()


async def test_the_asynchronous_agent(user: Path, folder: Path, model: ScriptedModel) -> None:
    allow(user, "mcp__local__double")
    model.answers = [call("mcp__local__double", value=4), "It is 8.", "Hello there."]
    with model:
        async with await AsyncAgent.create(folder, instructions="Be brief.") as agent:

            @agent.host.tool
            async def double(value: int) -> int:
                """Doubles a number."""
                return value * 2

            session = agent.session(folder)
            reply = await session.send("What is twice 4?")
            assert reply.response == "It is 8."
            assert not reply.tool_calls[0].is_error
            types = [event.type async for event in session.stream("Hello")]
            assert (types[0], types[-1]) == ("started", "ended")
            assert (await session.usage()).total == 45
            assert len(await session.messages()) == 6
            assert [stored.id for stored in await agent.sessions()] == [session.id]
            assert (await agent.resume(session.id)).id == session.id
            assert await agent.delete(session.id)
    assert "Be brief." in str(model.requests[0]["messages"])


@pytest.mark.parametrize("answer", [True, False])
def test_calls_that_require_approval(folder: Path, model: ScriptedModel, answer: bool) -> None:
    questions: list[ApprovalQuestion] = []

    def approve(question: ApprovalQuestion) -> bool:
        questions.append(question)
        return answer

    path = str(folder / "new.txt")
    model.answers = [call("mcp__files__write_file", path=path, content="new"), "Done."]
    with model, Agent.create(folder, on_approval=approve) as agent:
        session = agent.session(folder)
        session.add_mcp_server("files", **filesystem(folder))
        reply = session.send("Write new.txt")
    assert [question["tool"] for question in questions] == ["write_file"]
    assert reply.tool_calls[0].is_error is not answer
    assert (folder / "new.txt").exists() is answer


@pytest.mark.parametrize(
    ("tool", "is_trusted", "is_allowed"),
    [("list_directory", True, True), ("create_directory", True, False), ("list_directory", False, False)],
)
def test_without_a_callback_only_what_a_trusted_server_declares_read_only(
    folder: Path, model: ScriptedModel, tool: str, is_trusted: bool, is_allowed: bool
) -> None:
    path = str(folder / "made") if tool == "create_directory" else str(folder)
    model.answers = [call(f"mcp__files__{tool}", path=path), "Done."]
    with model, Agent.create(folder) as agent:
        session = agent.session(folder)
        session.add_mcp_server("files", **filesystem(folder), trust_annotations=is_trusted)
        reply = session.send("Go on")
    assert reply.tool_calls[0].is_error is not is_allowed
    assert not (folder / "made").exists()


def test_a_turn_is_interrupted_from_another_thread(folder: Path, model: ScriptedModel) -> None:
    model.answers = ["never sent", "second"]
    model.gate.clear()
    with model, Agent.create(folder) as agent:
        session = agent.session(folder)

        def interrupt() -> None:
            model.asked.wait(30)
            session.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(OperationCancelledError):
            session.send("Hello")
        thread.join()


async def test_a_cancelled_task_interrupts_its_turn(folder: Path, model: ScriptedModel) -> None:
    model.answers = ["never seen"]
    model.gate.clear()
    with model:
        async with await AsyncAgent.create(folder) as agent:
            turn = asyncio.create_task(agent.session(folder).send("Hello"))
            await asyncio.to_thread(model.asked.wait, 30)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn


def test_a_turn_is_interrupted_down_to_the_server(user: Path, folder: Path, model: ScriptedModel, recorder: Recorder) -> None:
    allow(user, "mcp__recording__*")
    model.answers = [call("mcp__recording__hang")] * 2 + ["Still here."]
    with model, Agent.create(folder) as agent:
        session = agent.session(folder)
        session.add_mcp_server("recording", **recording(recorder))
        # By closing the events.
        turn = session.stream("Wait")
        assert next(event for event in turn if event.type == "call_begins").tool == "hang"
        number = recorder.until("hangs ")
        turn.close()
        assert recorder.until("cancelled ") == number
        # By `interrupt`, which the events report.
        turn = session.stream("Wait")
        with pytest.raises(OperationCancelledError):
            for event in turn:
                if event.type == "call_begins":
                    number = recorder.until("hangs ")
                    session.interrupt()
        assert recorder.until("cancelled ") == number
        assert str(session.send("Are you there?")) == "Still here."


async def test_a_turn_of_the_asynchronous_agent_is_interrupted(user: Path, folder: Path, model: ScriptedModel) -> None:
    allow(user, "mcp__local__hang")
    model.answers = [call("mcp__local__hang")] * 2 + ["Still here."]
    with model:
        async with await AsyncAgent.create(folder) as agent:
            begun, cancelled = asyncio.Event(), asyncio.Event()

            @agent.host.tool
            async def hang() -> None:
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

            session = agent.session(folder)
            turn = asyncio.create_task(session.send("Wait"))
            await asyncio.wait_for(begun.wait(), PATIENCE)
            session.interrupt()
            with pytest.raises(OperationCancelledError):
                await turn
            await asyncio.wait_for(cancelled.wait(), PATIENCE)

            begun.clear()
            cancelled.clear()
            events = session.stream("Wait")
            async for event in events:
                if event.type == "call_begins":
                    await asyncio.wait_for(begun.wait(), PATIENCE)
                    break
            events.close()
            await asyncio.wait_for(cancelled.wait(), PATIENCE)
            assert str(await session.send("Are you there?")) == "Still here."


@pytest.mark.parametrize(
    ("budget", "reason", "requests"),
    [({"max_requests": 2}, "turn_budget", 2), ({"max_tokens": 20}, "token_budget", 2)],
)
def test_budgets(folder: Path, model: ScriptedModel, budget: dict[str, Any], reason: str, requests: int) -> None:
    model.answers = [call("mcp__files__list_allowed_directories")] * 4
    with model, Agent.create(folder, **budget) as agent:
        session = agent.session(folder)
        session.add_mcp_server("files", **filesystem(folder))
        assert session.send("Go on").reason == reason
    assert len(model.requests) == requests


async def test_budgets_of_the_asynchronous_agent(folder: Path, model: ScriptedModel) -> None:
    model.answers = [call("mcp__local__again")] * 4
    with model:
        async with await AsyncAgent.create(folder, max_requests=3, max_tokens=20) as agent:
            agent.host.tool(name="again", schema={"type": "object"})(lambda: "again")
            assert (await agent.session(folder).send("Go on")).reason == "token_budget"


def test_sub_agents(user: Path, folder: Path, model: ScriptedModel) -> None:
    allow(user, "mcp__local__double")
    model.answers = [call("Agent", prompt="Double 4"), call("mcp__local__double", value=4), "It is 8.", "The answer is 8."]
    seen: list[str] = []

    def observe(call: HookCall) -> None:
        seen.append(call["name"])

    with model, Agent.create(folder, on_before_call=observe, on_approval=lambda question: True) as agent:

        @agent.host.tool
        def double(value: int) -> int:
            return value * 2

        session = agent.session(folder)
        events = list(session.stream("What is twice 4?"))
    begun = {event.tool: event for event in events if event.type == "call_begins"}
    assert begun["Agent"].parent is None
    # The call of the sub-agent names the call that started it.
    assert begun["double"].parent == begun["Agent"].id
    assert seen == ["Agent", "mcp__local__double"]
    assert events[-1].response == "The answer is 8."
    # The tokens of the sub-agent count.
    assert events[-1].usage["input"] + events[-1].usage["output"] == 60
    # It knows nothing but its prompt.
    assert "What is twice 4?" not in str(model.requests[1]["messages"])


def test_a_session_is_resumed_by_another_agent_and_compacted(folder: Path, model: ScriptedModel) -> None:
    model.answers = ["Hello.", "Welcome back.", "They greeted each other.", "Yes."]
    with model:
        with Agent.create(folder) as agent:
            session = agent.session(folder)
            session.send("Remember the word heron")
        with Agent.create(folder) as agent:
            resumed = agent.resume(session.id)
            assert (resumed.id, resumed.workspace) == (session.id, session.workspace)
            assert str(resumed.send("Hello again")) == "Welcome back."
            assert "heron" in str(model.requests[1]["messages"])
            resumed.compact()
            assert str(resumed.send("Do you remember?")) == "Yes."
            assert "They greeted each other." in str(model.requests[3]["messages"])


def test_what_cannot_be_created(folder: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        Agent.create(folder / "missing.hcl")
    assert caught.value.hint
    with model, Agent.create(folder) as agent:
        with pytest.raises(InvalidArgumentsError):
            agent.session(folder / "missing")
        with pytest.raises(UnavailableError) as failed:
            agent.session(folder).add_mcp_server("bad", command="no-such-program-here")
        assert (failed.value.server, failed.value.step) == ("bad", "connecting")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelError):
        Agent.create(folder)
