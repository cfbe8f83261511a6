"""One way to speak for both eras of the official client: what differs between them is here."""

import contextlib
import importlib.metadata
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import jsonschema
import mcp.client.session
import mcp.client.stdio
from mcp import StdioServerParameters, types
from mcp.client.stdio import stdio_client

ERA = int(importlib.metadata.version("mcp").split(".")[0])

if ERA == 1:
    import httpx
    from mcp import ClientSession, McpError
    from mcp.client.streamable_http import streamable_http_client
else:
    import httpx2 as httpx
    from mcp import Client
    from mcp import MCPError as McpError
    from mcp.client.streamable_http import streamable_http_client

# A machine that stands still for some seconds is no server of the first era, and none to be killed.
mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 60.0
mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 60.0

Json = dict[str, Any]
Person = Callable[[str], Json]
__all__ = ["McpError", "Speaker", "connected", "order", "report"]


def order() -> Json:
    """What the test wants of this script."""
    return json.loads(sys.argv[1])


def report(value: Json) -> None:
    print(json.dumps(value))


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


class Speaker:
    def __init__(self, session: Any, version: str) -> None:
        self.session = session
        self.version = version
        self.schemas: dict[str, Json] = {}
        self.called: set[str] = set()

    async def tools(self) -> list[Json]:
        tools = [plain(it) for it in (await self.session.list_tools()).tools]
        self.schemas = {it["name"]: it["outputSchema"] for it in tools if "outputSchema" in it}
        return tools

    async def call(
        self,
        name: str,
        heard: Callable[[str], Awaitable[None]] | None = None,
        **arguments: Any,
    ) -> Json:
        """The result, whose structured content fits what the tool says of it."""

        self.called.add(name)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            if heard is not None:
                await heard(message or "")

        result = plain(
            await self.session.call_tool(
                name, arguments, progress_callback=progressed if heard is not None else None
            )
        )
        if "structuredContent" in result and name in self.schemas:
            jsonschema.validate(result["structuredContent"], self.schemas[name])
        return result

    async def done(self, name: str, **arguments: Any) -> Json:
        """The structured content of a call that must succeed."""
        result = await self.call(name, **arguments)
        assert not result.get("isError"), f"{name}: {result}"
        return result["structuredContent"]

    async def resources(self) -> list[Json]:
        return [plain(it) for it in (await self.session.list_resources()).resources]

    async def templates(self) -> list[str]:
        listed = await self.session.list_resource_templates()
        return [plain(it)["uriTemplate"] for it in listed.resourceTemplates] if ERA == 1 else [
            it.uri_template for it in listed.resource_templates
        ]

    async def read(self, uri: str) -> list[Json]:
        if ERA == 1:
            from pydantic import AnyUrl

            return [plain(it) for it in (await self.session.read_resource(AnyUrl(uri))).contents]
        return [plain(it) for it in (await self.session.read_resource(uri)).contents]

    async def call_off(self, name: str, when: str, **arguments: Any) -> None:
        """Calls, and calls it off when its progress says this."""
        up = anyio.Event()

        async def heard(message: str) -> None:
            if when in message:
                up.set()

        async with anyio.create_task_group() as group:
            if ERA == 1:
                # This client leaves it to its user to say so; its requests are numbered.
                number = self.session._request_id

                async def calling() -> None:
                    with contextlib.suppress(McpError):
                        await self.call(name, heard, **arguments)

                group.start_soon(calling)
                await up.wait()
                cancelled = types.CancelledNotification(
                    method="notifications/cancelled",
                    params=types.CancelledNotificationParams(requestId=number, reason="enough"),
                )
                await self.session.send_notification(types.ClientNotification(cancelled))
                group.cancel_scope.cancel()
            else:
                group.start_soon(lambda: self.call(name, heard, **arguments))
                await up.wait()
                group.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def connected(
    place: Json, mode: str, person: Person | None = None
) -> AsyncIterator[Speaker]:
    """`person` answers what is asked: from the message to the fields of the form, or an action."""
    asked = None
    if person is not None:

        async def asked(context: Any, params: Any) -> Any:
            answer = person(params.message)
            if "action" in answer:
                return types.ElicitResult(action=answer["action"])
            return types.ElicitResult(action="accept", content=answer)

    async with contextlib.AsyncExitStack() as stack:
        if "url" in place:
            headers = {"Authorization": f"Bearer {place['token']}"}
            http = await stack.enter_async_context(
                httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(60, read=300))
            )
            transport = streamable_http_client(place["url"], http_client=http)
        else:
            transport = stdio_client(
                StdioServerParameters(
                    command=place["command"][0],
                    args=place["command"][1:],
                    env=place["env"],
                    cwd=place["cwd"],
                )
            )
        if ERA == 1:
            streams = await stack.enter_async_context(transport)
            session = await stack.enter_async_context(
                ClientSession(streams[0], streams[1], elicitation_callback=asked)
            )
            version = str((await session.initialize()).protocolVersion)
            yield Speaker(session, version)
        else:
            client = await stack.enter_async_context(
                Client(transport, mode=mode, elicitation_callback=asked, cache=None)
            )
            yield Speaker(client, client.protocol_version)
