"""Settings: everything that was said, as typed values. Made once, passed down; it never changes."""

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from everstep.domain.breaker import BreakerPolicy
from everstep.domain.consent import Consent
from everstep.domain.ids import Millis
from everstep.domain.rate import parse_rate
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.settings.keys import BY_NAME, KEYS, checked, known, refused
from everstep.settings.kinds import Value
from everstep.settings.limits import limits_of
from everstep.settings.notify import NotifySettings, notify_of
from everstep.settings.parts import (
    EngineSettings,
    EventSettings,
    LimitSettings,
    NetworkSettings,
    RetrySettings,
    ServeSettings,
    TemporalSettings,
)
from everstep.settings.place import DATABASES, USUAL_FILE, scheme_of

SOCKET_BYTES_MAX: Final = 100
"""The shortest limit of the systems we know is 104, with a NUL."""
TEMPORAL: Final = ("address", "namespace", "queue")
USUAL_STORE: Final = "everstep"
"""The stem of the store's file when nobody named another."""


@record
class Said:
    """A checked value, who said it, and where its relative paths count from."""

    value: Value
    source: str
    folder: Path


@record
class Settings:
    """All of them. `base` is the project folder."""

    base: Path
    store: str
    store_path: Path | None
    """None: a database, which has no file, no lock and no socket here."""
    home: Path
    """The file beside which is kept what belongs to this host."""
    server: str
    token_path: Path
    owner: str
    workspace: Path
    tools: tuple[str, ...]
    plans_dirs: tuple[Path, ...]
    plans_trusted: frozenset[str]
    """Digests of plans that the operator stands behind, whoever sends them."""
    artifacts: Path
    durability: str
    log_level: str
    serve: ServeSettings
    engine: EngineSettings
    temporal: TemporalSettings
    events: EventSettings
    notify: NotifySettings
    limits: LimitSettings
    consent: Consent
    """What the operator says about calls."""
    audit_key: str
    retry: RetrySettings
    breaker: BreakerPolicy
    breakers: Mapping[str, BreakerPolicy]
    """Those that steps name, where they differ."""
    pools: Mapping[str, int]
    """Calls at the same time, by pool."""
    fleet_pools: frozenset[str]
    """Those of them that all workers share."""
    rates: Mapping[str, str]
    """`10/1s`, by provider."""
    quotas: Mapping[str, int]
    """Calls a day, by provider."""
    network: NetworkSettings
    secrets_dir: Path | None
    runtime: Path
    """Where a socket goes whose path would be too long beside the store."""
    token: str
    said: Mapping[str, Said]

    def with_store(self, url: str) -> "Settings":
        """The same on another store; what stands beside the store goes with it."""
        place = "the argument 'store'"
        said = Said(value=checked(BY_NAME["store"], url, place), source=place, folder=self.base)
        return build({**self.said, "store": said}, self.base, self.runtime, self.token)

    def without(self, table: str) -> "Settings":
        """The same, but for what was said below `table`."""
        kept = {name: said for name, said in self.said.items() if not name.startswith(f"{table}.")}
        return build(kept, self.base, self.runtime, self.token)

    def source_of(self, key: str) -> str:
        """Who said so: `default`, `flag`, a variable, or a file and its line."""
        return self.said[key].source

    def listing(self) -> JsonObject:
        """Every key with its value as it would be written, but for what is secret, and its source."""
        every = (*KEYS, *(known(name, "") for name in self.said if name not in BY_NAME))
        said = {key.name: key.seen(self.said[key.name].value) for key in every}
        return {name: {"value": value, "source": self.source_of(name)} for name, value in said.items()}

    @property
    def grants(self) -> Mapping[str, tuple[str, ...]]:
        """Secrets that an owner may use."""
        return {name: value for name, value in _family(self.said, "secrets.grants") if isinstance(value, tuple)}

    def tables(self, family: str) -> dict[str, dict[str, Value]]:
        """What was said below `family`, table by table: `http.targets` -> {name: {field: value}}."""
        found: dict[str, dict[str, Value]] = {}
        for name, value in _family(self.said, family):
            table, _, field = name.partition(".")
            found.setdefault(table, {})[field] = value
        return found

    @property
    def lock_path(self) -> Path:
        """Locked by the store's one engine; the text in it says who that is."""
        assert self.store_path is not None
        return self.store_path.resolve().with_suffix(".lock")

    @property
    def socket_path(self) -> Path:
        """The local door of whoever holds the store: beside it, unless the system cannot name it there."""
        assert self.store_path is not None
        path = beside(self.store_path, "control.sock")
        if len(os.fsencode(path)) <= SOCKET_BYTES_MAX:
            return path
        return self.runtime / f"{sha256(os.fsencode(path)).hexdigest()[:16]}.sock"

    @property
    def log_path(self) -> Path:
        """The operator's log."""
        return beside(self.home, "logs") / "everstep.log"


def beside(store: Path, name: str) -> Path:
    """A companion of a store: `NAME` for the usual one, `work.NAME` for `work.db`, so that no two stores share it."""
    real = store.resolve()
    return real.with_name(name if real.stem == USUAL_STORE else f"{real.stem}.{name}")


def build(said: Mapping[str, Said], base: Path, runtime: Path, token: str = "") -> Settings:
    """What was said about each key, put together; raises SettingsError where two do not go together."""
    merged = _Merged(said)
    owner, live_tasks = merged.text("owner"), said["limits.live_tasks"].value
    home = (store_path := _store_path(merged)) or merged.place("store", USUAL_FILE)
    return Settings(
        base=base,
        store=merged.text("store"),
        store_path=store_path,
        home=home,
        server=merged.text("server"),
        token_path=merged.path("token_file") or beside(home, "token"),
        owner=owner,
        workspace=merged.path("workspace") or base,
        tools=merged.words("tools"),
        plans_dirs=tuple(merged.place("plans.dirs", folder) for folder in merged.words("plans.dirs")),
        plans_trusted=frozenset(merged.words("plans.trusted")),
        artifacts=merged.path("artifacts") or beside(home, "artifacts"),
        durability=merged.text("durability"),
        log_level=merged.text("log_level"),
        serve=_serve(merged),
        engine=_engine(merged),
        temporal=TemporalSettings(**{name: merged.text(f"temporal.{name}") for name in TEMPORAL}),
        events=EventSettings(
            heartbeat_ms=Millis(merged.number("events.heartbeat")),
            tick_hz=merged.number("events.tick_hz"),
            queue=merged.number("events.queue"),
            queue_bytes=merged.number("events.queue_bytes"),
            sockets_per_token=merged.number("events.sockets_per_token"),
        ),
        notify=notify_of(merged.words, merged.text, merged.flag),
        limits=limits_of(merged.number, merged.amount, live_tasks if isinstance(live_tasks, int) else None),
        retry=_retry(merged),
        consent=Consent(
            approve={name: bool(value) for name, value in _family(said, "policy.approve")},
            allow_untrusted=frozenset(name for name, value in _family(said, "policy.untrusted") if value == "allow"),
            permissions={
                name: value for name, value in _family(said, "policy.permissions") if isinstance(value, tuple)
            },
            llm_approvals=frozenset(merged.words("policy.llm_approvals")),
        ),
        audit_key=merged.text("audit.key"),
        breaker=_breaker(merged, "breaker"),
        breakers={
            name: _breaker(merged, f"breakers.{name}")
            for name in dict.fromkeys(key.split(".")[1] for key in said if key.startswith("breakers."))
        },
        pools={name.removesuffix(".size"): value for name, value in _family(said, "pools") if isinstance(value, int)},
        fleet_pools=frozenset(
            name.removesuffix(".scope") for name, value in _family(said, "pools") if value == "fleet"
        ),
        rates={name: value for name, value in _family(said, "rates") if isinstance(value, str)},
        quotas={name: value for name, value in _family(said, "quotas") if isinstance(value, int)},
        secrets_dir=merged.path("secrets.dir"),
        network=_network(merged),
        runtime=runtime,
        token=token,
        said=said,
    )


def _family(said: Mapping[str, Said], name: str) -> Iterator[tuple[str, Value]]:
    """What was said under `name.`"""
    return ((key.removeprefix(f"{name}."), one.value) for key, one in said.items() if key.startswith(f"{name}."))


def _network(merged: "_Merged") -> NetworkSettings:
    return NetworkSettings(
        public_reads=merged.text("policy.network_reads") == "public",
        hosts=merged.words("policy.hosts"),
        networks=merged.words("policy.networks"),
    )


def _store_path(merged: "_Merged") -> Path | None:
    scheme = scheme_of(merged.text("store"))
    if scheme is not None and scheme not in DATABASES:
        raise merged.refuse("store", f"begins '{scheme}://': name a file, or a database as postgresql://HOST/NAME")
    return merged.place("store", merged.text("store")) if scheme is None else None


def _engine(merged: "_Merged") -> EngineSettings:
    settings = EngineSettings(
        tasks=merged.number("engine.tasks"),
        heartbeat_ms=Millis(merged.number("engine.heartbeat")),
        stale_after_ms=Millis(merged.number("engine.stale_after")),
        max_recoveries=merged.number("engine.max_recoveries"),
        shutdown_grace_ms=Millis(merged.number("engine.shutdown_grace")),
        step_timeout_ms=Millis(merged.number("engine.step_timeout")),
        pause_timeout_ms=Millis(merged.number("engine.pause_timeout")),
        on_pause_timeout=merged.text("engine.on_pause_timeout"),
        signal_keep_ms=Millis(merged.number("engine.signal_keep")),
        janitor_ms=Millis(merged.number("engine.janitor")),
        listen_dsn=merged.text("engine.listen_dsn"),
        name=merged.text("engine.name"),
        kind=merged.text("engine.kind"),
        allow_fuse=merged.flag("engine.allow_fuse"),
    )
    if settings.stale_after_ms <= 2 * settings.heartbeat_ms:
        nearer = merged.louder("engine.stale_after", "engine.heartbeat")
        raise merged.refuse(nearer, "is wrong: a worker would count as dead between two beats of 'engine.heartbeat'")
    return settings


def _serve(merged: "_Merged") -> ServeSettings:
    rate = parse_rate(merged.text("serve.rate"))
    assert rate is not None
    for one, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if merged.text(f"serve.{one}") and not merged.text(f"serve.{other}"):
            raise merged.refuse(f"serve.{other}", "is missing: a certificate and its key go together")
    return ServeSettings(
        host=merged.text("serve.host"),
        port=merged.number("serve.port"),
        ui=merged.flag("serve.ui"),
        mcp=merged.flag("serve.mcp"),
        tls_cert=merged.path("serve.tls_cert"),
        tls_key=merged.path("serve.tls_key"),
        behind_tls_proxy=merged.flag("serve.behind_tls_proxy"),
        allowed_hosts=merged.words("serve.allowed_hosts"),
        allowed_origins=merged.words("serve.allowed_origins"),
        request_timeout_ms=Millis(merged.number("serve.request_timeout")),
        rate=rate,
    )


def _breaker(merged: "_Merged", place: str) -> BreakerPolicy:
    """What is said below `place`; of what is not, below `breaker`."""

    def number(field: str) -> int:
        return merged.number(merged.nearest(f"{place}.{field}", f"breaker.{field}"))

    policy = BreakerPolicy(
        failures=number("failures"),
        share=number("share") / 1_000,
        last=number("last"),
        least=number("min"),
        window_ms=Millis(number("window")),
        cool_down_ms=Millis(number("cool_down")),
        max_cool_down_ms=Millis(number("max_cool_down")),
        close_after=number("close_after"),
    )
    if policy.cool_down_ms > policy.max_cool_down_ms:
        shorter, longer = (merged.nearest(f"{place}.{one}", f"breaker.{one}") for one in ("cool_down", "max_cool_down"))
        nearer = merged.louder(shorter, longer)
        raise merged.refuse(nearer, f"is wrong: '{shorter}' is longer than '{longer}'")
    return policy


def _retry(merged: "_Merged") -> RetrySettings:
    settings = RetrySettings(
        times=merged.number("retry.times"),
        delay_ms=Millis(merged.number("retry.delay")),
        max_delay_ms=Millis(merged.number("retry.max_delay")),
    )
    if settings.delay_ms > settings.max_delay_ms:
        nearer = merged.louder("retry.delay", "retry.max_delay")
        raise merged.refuse(nearer, "is wrong: 'retry.delay' is longer than 'retry.max_delay'")
    return settings


class _Merged:
    """Typed access to what was said; the table has checked the types."""

    def __init__(self, said: Mapping[str, Said]) -> None:
        self._said = said

    def text(self, name: str) -> str:
        value = self._said[name].value
        assert isinstance(value, str)
        return value

    def words(self, name: str) -> tuple[str, ...]:
        value = self._said[name].value
        assert isinstance(value, tuple)
        return value

    def number(self, name: str) -> int:
        value = self._said[name].value
        assert isinstance(value, int)
        return value

    def nearest(self, *names: str) -> str:
        """The first that anybody has said something about."""
        return next(name for name in names if name in self._said)

    def flag(self, name: str) -> bool:
        return bool(self.number(name))

    def amount(self, name: str) -> float:
        value = self._said[name].value
        assert isinstance(value, int | float)
        return value

    def path(self, name: str) -> Path | None:
        """The path that is given; None if it is empty."""
        text = self.text(name)
        return self.place(name, text) if text else None

    def place(self, name: str, text: str) -> Path:
        """A path, counted from where the key was given."""
        return Path(os.path.normpath(self._said[name].folder / Path(text).expanduser()))

    def louder(self, *names: str) -> str:
        """The first that is not a default: the one to correct."""
        return next((name for name in names if self._said[name].source != "default"), names[0])

    def refuse(self, name: str, why: str) -> Exception:
        return refused(self._said[name].source, f"'{name}' {why}", name)
