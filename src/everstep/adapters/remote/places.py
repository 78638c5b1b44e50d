"""Servers as the settings name them: how each is started, or where it is."""

from collections.abc import Callable
from typing import Final

from everstep.adapters.isolation.bounds import walls_of
from everstep.adapters.net import Client
from everstep.adapters.remote.link import Link
from everstep.adapters.remote.over_http import HttpLink
from everstep.adapters.remote.program import Command, program_of
from everstep.adapters.remote.server import RemoteServer
from everstep.adapters.remote.stdio import StdioLink
from everstep.domain.errors import SettingsError
from everstep.ports.tool import Misconfigured
from everstep.settings import Settings
from everstep.settings.kinds import Value
from everstep.settings.values import beside

FAMILY: Final = "mcp.servers"


def server_of(settings: Settings, name: str, client: Client, secret: Callable[[str], str | None]) -> RemoteServer:
    """The server of that name, not started; raises SettingsError."""
    table = settings.tables(FAMILY).get(name, {})
    argv, url = words(table.get("command")), str(table.get("url") or "")
    if bool(argv) == bool(url):
        raise SettingsError(
            f"'{FAMILY}.{name}' needs either 'command' or 'url'", what_to_do="say how to start it, or where it is"
        )
    home = beside(settings.home, "mcp") / name
    given = {key.removeprefix("env."): str(value) for key, value in table.items() if key.startswith("env.")}

    def link() -> Link:
        if url:
            auth = _value(str(table.get("auth") or ""), secret)
            return HttpLink(client, url, (("Authorization", f"Bearer {auth}"),) if auth else ())
        command = Command(
            name=f"mcp.{name}",
            argv=argv,
            env={key: _value(value, secret) for key, value in given.items()},
            network=bool(table.get("network", 1)),
            project=settings.base,
            home=home,
            reads=words(table.get("reads")),
            writes=words(table.get("writes")),
        )
        return StdioLink(program_of(command, walls_of(settings)), command.name)

    return RemoteServer(name=f"mcp.{name}", link=link)


def words(value: Value) -> tuple[str, ...]:
    """A list of the settings."""
    return value if isinstance(value, tuple) else ()


def _value(said: str, secret: Callable[[str], str | None]) -> str:
    """A text, or the secret that it names."""
    if not said.startswith("secret:"):
        return said
    value = secret(said.removeprefix("secret:"))
    if value is None:
        raise Misconfigured(f"there is no secret '{said.removeprefix('secret:')}'", code="secret_missing")
    return value
