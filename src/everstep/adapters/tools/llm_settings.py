"""The endpoints of `llm.*`, as the settings name them."""

from everstep.adapters.net import Client, parse_url
from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.tools.llm import Endpoint, LlmTools
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.errors import SettingsError
from everstep.ports.tool import ToolError
from everstep.settings import Settings
from everstep.wire.schema import compile_schema


def llm_of(settings: Settings, secrets: KnownSecrets) -> LlmTools:
    """The tools, or an empty family where no endpoint is named; raises SettingsError."""
    endpoints = []
    for name, table in settings.tables("llm.endpoints").items():
        key = f"llm.endpoints.{name}"
        if not table.get("url"):
            raise SettingsError(f"'{key}' has no 'url'", what_to_do='say where it is: url = "https://host/v1"')
        try:
            parse_url(str(table["url"]))
        except ToolError as error:
            place = settings.source_of(f"{key}.url")
            raise SettingsError(f"{place}: '{key}.url': {error}", what_to_do="correct the URL") from error
        endpoints.append(
            Endpoint(
                name=name,
                url=str(table["url"]),
                auth=str(table.get("auth") or ""),
                model=str(table.get("model") or ""),
                price_in=_price(table.get("price_in")),
                price_out=_price(table.get("price_out")),
                json_schema=bool(table.get("json_schema", True)),
            )
        )
    timeout_ms = settings.said["llm.timeout"].value
    assert isinstance(timeout_ms, int)
    return LlmTools(
        Client(guard=guard_of(settings)),
        endpoints,
        compile_schema,
        secret=lambda name: secrets.get(name, settings.owner),
        timeout_s=timeout_ms / 1000,
    )


def _price(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
