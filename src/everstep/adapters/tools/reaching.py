"""The families that reach other machines, made as the settings say: one guard, one client for all of them."""

from collections.abc import Iterator

from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Guard, Network, parse_network
from everstep.adapters.net.url import parse_url
from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.http import HttpTarget, HttpTools
from everstep.adapters.tools.search import providers_of, search_of
from everstep.adapters.tools.webhook import WebhookTarget, WebhookTools
from everstep.domain.errors import SettingsError
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import ToolError
from everstep.settings import Settings


def reaching(settings: Settings, threads: Threads, secrets: KnownSecrets) -> Iterator[ToolAdapter]:
    """All of them; what is wrong in the settings is a SettingsError with its place."""
    client = Client(guard=guard_of(settings))
    yield HttpTools(
        client,
        _http_targets(settings),
        threads,
        lambda name, owner: secrets.get(name, owner or settings.owner),
        learn=secrets.redactor.add,
    )
    for name, url in providers_of(settings).items():
        _readable(settings, f"search.providers.{name}", url)
    yield search_of(settings, client, threads)
    yield WebhookTools(client, _webhook_targets(settings), lambda name: secrets.get(name, settings.owner))


def guard_of(settings: Settings) -> Guard:
    """What tools may reach."""
    network = settings.network
    return Guard(
        hosts=network.hosts,
        networks=tuple(_network(settings, text) for text in network.networks),
        public_reads=network.public_reads,
        own_port=settings.serve.port,
    )


def _network(settings: Settings, text: str) -> Network:
    try:
        return parse_network(text)
    except ValueError as error:
        place = settings.source_of("policy.networks")
        raise SettingsError(
            f"{place}: '{text}' in 'policy.networks' is no network: {error}",
            what_to_do='write it as "10.1.0.0/16:443"',
        ) from error


def _http_targets(settings: Settings) -> dict[str, HttpTarget]:
    targets = {}
    for name, table in settings.tables("http.targets").items():
        fields = {field: str(value) for field, value in table.items()}
        if "url" not in fields:
            raise SettingsError(f"'http.targets.{name}' has no 'url'", what_to_do="say which place it is")
        for field in ("url", "token_url", "probe", "health"):
            _readable(settings, f"http.targets.{name}.{field}", fields.get(field, ""))
        targets[name] = HttpTarget(**fields)
    return targets


def _webhook_targets(settings: Settings) -> dict[str, WebhookTarget]:
    targets = {}
    for name, table in settings.tables("webhook.targets").items():
        url, secrets = str(table.get("url") or ""), table.get("secrets")
        _readable(settings, f"webhook.targets.{name}.url", url)
        if not url:
            raise SettingsError(f"'webhook.targets.{name}' has no 'url'", what_to_do="say which place it is")
        targets[name] = WebhookTarget(
            url=url,
            secrets=secrets if isinstance(secrets, tuple) else (),
            drops_repeats=bool(table.get("drops_repeats")),
        )
    return targets


def _readable(settings: Settings, key: str, url: str) -> None:
    try:
        if url:
            parse_url(url.replace("{key}", "k"))
    except ToolError as error:
        raise SettingsError(f"{settings.source_of(key)}: '{key}': {error}", what_to_do="correct the URL") from error
