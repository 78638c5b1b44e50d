"""The families of MCP servers, as the settings let them in."""

from collections.abc import Iterator

from everstep.adapters.isolation.bounds import walls_of
from everstep.adapters.net import Client
from everstep.adapters.remote.pins import Pins
from everstep.adapters.remote.places import FAMILY, server_of, words
from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.tools.mcp import McpTools, Offer
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.settings import Settings
from everstep.settings.values import beside
from everstep.wire.schema import compile_schema


def mcp_tools(settings: Settings, secrets: KnownSecrets) -> Iterator[McpTools]:
    """One family for each server; raises SettingsError."""
    client, walls = client_of(settings), walls_of(settings)
    for name, table in settings.tables(FAMILY).items():
        if not table.keys() & {"command", "url", "tools", "resources"}:
            continue  # a word on a server that only a proxy stands before
        effects = {key.removeprefix("effects."): Effect(str(said)) for key, said in table.items() if "effects." in key}
        offer = Offer(
            name=name,
            tools=words(table.get("tools")),
            effects=effects,
            trust_hints=bool(table.get("trust_hints")),
            resources=words(table.get("resources")),
            walls=walls,
        )
        server = server_of(settings, name, client, lambda secret: secrets.get(secret, settings.owner))
        yield McpTools(server, offer, pins_of(settings, name), usable=_usable)


def client_of(settings: Settings) -> Client:
    """The way to servers elsewhere."""
    return Client(guard=guard_of(settings))


def pins_of(settings: Settings, name: str) -> Pins:
    """Where its definitions are kept."""
    return Pins(beside(settings.home, "mcp") / f"{name}.json")


def _usable(schema: JsonObject) -> bool:
    try:
        compile_schema(schema)
    except (ValueError, RecursionError):
        return False
    return schema.get("type") == "object"
