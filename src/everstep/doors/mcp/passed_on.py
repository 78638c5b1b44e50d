"""Prompts and resources of the server behind the proxy: listed as it lists them, asked for as we are asked."""

from collections.abc import AsyncIterator, Mapping

from everstep.bootstrap import Proxied
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.completing import Completion
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.refusals import INTERNAL_ERROR, Refused
from everstep.doors.mcp.resources import Resources
from everstep.doors.mcp.talk import Tell
from everstep.ports.tool import ToolError


class RemotePrompts(Prompts):
    """`prompts/*`, passed on."""

    def __init__(self, desk: DoorDesk, remote: Proxied) -> None:
        super().__init__(desk)
        self._remote = remote

    def offered(self) -> list[Json]:
        """As the server lists them."""
        return list(self._remote.prompts)

    async def get(self, client: Client, name: str, arguments: Mapping[str, str], tell: Tell) -> Json:  # noqa: ARG002
        """As the server gives it."""
        return await _passed_on(self._remote, "prompts/get", {"name": name, "arguments": dict(arguments)})


class RemoteResources(Resources):
    """`resources/*`, passed on."""

    def __init__(self, desk: DoorDesk, remote: Proxied) -> None:
        super().__init__(desk)
        self._remote = remote

    def plans(self) -> list[Json]:
        """As the server lists them."""
        return list(self._remote.resources)

    def templates(self) -> list[Json]:
        """As the server lists them."""
        return list(self._remote.templates)

    async def read(self, client: Client, uri: str) -> Json:  # noqa: ARG002
        """As the server gives it."""
        return await _passed_on(self._remote, "resources/read", {"uri": uri})

    async def updates(self, client: Client, uri: str) -> AsyncIterator[None]:  # noqa: ARG002
        """As the server says it."""
        return self._of_server(uri)

    async def _of_server(self, uri: str) -> AsyncIterator[None]:
        try:
            async for _ in self._remote.updates(uri):
                yield
        except ToolError as error:
            raise _refused(error) from error


class RemoteCompletion(Completion):
    """`completion/complete`, passed on."""

    def __init__(self, desk: DoorDesk, remote: Proxied) -> None:
        super().__init__(desk)
        self._remote = remote

    async def complete(self, client: Client, ref: Json, argument: Json) -> Json:  # noqa: ARG002
        """As the server gives it."""
        return await _passed_on(self._remote, "completion/complete", {"ref": ref, "argument": argument})


async def _passed_on(remote: Proxied, method: str, params: Json) -> Json:
    try:
        return dict(await remote.ask(method, params))
    except ToolError as error:
        raise _refused(error) from error


def _refused(error: ToolError) -> Refused:
    said = error.details or {}
    number = said.get("number")
    return Refused(number if isinstance(number, int) else INTERNAL_ERROR, str(said.get("message") or error))
