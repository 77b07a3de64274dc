"""Servers over HTTP that require a login, or a header."""

from __future__ import annotations

import asyncio

import pytest
from protected import TOKEN, ProtectedServer, browse

from switchboard_mcp import Host, NeedsLoginError, SyncHost


async def test_a_login_opens_a_page_and_connects() -> None:
    with ProtectedServer() as server:
        async with Host.from_servers({"protected": {"type": "http", "url": server.url}}) as host:
            # A model can ask for the login.
            assert [tool.tool for tool in await host.list_tools()] == ["authenticate"]
            assert host.status()[0].state == "needs-auth"
            with pytest.raises(NeedsLoginError):
                await host.list_tools("protected")
            pages: list[str] = []

            async def open(url: str) -> None:
                pages.append(url)
                await asyncio.to_thread(browse, url)

            await host.login("protected", open)
            assert len(pages) == 1
            assert (await host.call("protected/secret")).text == "42"


def test_a_login_without_an_event_loop() -> None:
    with ProtectedServer() as server, SyncHost() as host:
        with pytest.raises(NeedsLoginError):
            host.add_server("protected", transport="streamable-http", url=server.url)
        host.login("protected", browse)
        assert host.call("protected/secret").text == "42"


@pytest.mark.parametrize("transport", ["http", "streamable-http", "streamable_http"])
async def test_headers_and_names_of_transports(transport: str) -> None:
    with ProtectedServer() as server:
        async with Host() as host:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            assert await host.add_server("protected", transport=transport, url=server.url, headers=headers) == 1
