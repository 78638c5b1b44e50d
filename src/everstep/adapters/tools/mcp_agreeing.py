"""The operator looks at an MCP server, and agrees to its tools as they are now."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from everstep.adapters.net import Client
from everstep.adapters.remote.pins import definition_of, digest_of, hint, proposed, shown
from everstep.adapters.remote.places import FAMILY, server_of, words
from everstep.adapters.secrets import KnownSecrets, gather
from everstep.adapters.tools.mcp_servers import pins_of
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.errors import Unavailable
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolError
from everstep.settings import Settings


@record
class Offered:
    """A tool as its server lists it, and what its hints speak for."""

    name: str
    description: str
    effect: str
    why: str
    destructive: bool
    changed: bool
    """Whether it differs from what was agreed to; a new one does."""
    definition: JsonObject


@dataclass
class Agreement:
    """With one server of the settings."""

    settings: Settings
    name: str

    @property
    def wanted(self) -> tuple[str, ...]:
        """The tools that the settings let in."""
        return words(self.settings.tables(FAMILY).get(self.name, {}).get("tools"))

    async def look(self) -> list[Offered]:
        """Start it once, in its containment; raises SettingsError, Unavailable."""
        secrets = KnownSecrets(gather({}, os.environ, self.settings.secrets_dir), self.settings.grants)
        client = Client(guard=guard_of(self.settings))
        server = server_of(self.settings, self.name, client, lambda one: secrets.get(one, self.settings.owner))
        try:
            found = [definition_of(one) for one in await server.listed("tools")]
        except ToolError as error:
            raise Unavailable(f"'{self.name}' does not answer: {error}", what_to_do="look at how it starts") from error
        finally:
            await server.close()
            await client.close()
        pinned = pins_of(self.settings, self.name).read()
        return [self._offered(one, pinned.get(str(one.get("name")))) for one in found]

    def agree(self, offered: Iterable[Offered]) -> None:
        """From now on these are what is called."""
        pins_of(self.settings, self.name).write([one.definition for one in offered])

    def _offered(self, definition: JsonObject, pinned: JsonObject | None) -> Offered:
        effect, why = proposed(definition)
        return Offered(
            name=str(definition.get("name")),
            description=shown(definition.get("description")),
            effect=effect.value,
            why=why,
            destructive=hint(definition, "destructiveHint"),
            changed=pinned is None or digest_of(pinned) != digest_of(definition),
            definition=definition,
        )
