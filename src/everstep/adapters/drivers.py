"""Who carries tasks, as the settings say: this engine itself, or a server outside."""

from importlib import import_module
from typing import cast

from everstep.domain.errors import SettingsError
from everstep.ports.driver import Driver
from everstep.settings import Settings


def driver_of(settings: Settings) -> Driver | None:
    """None: the engine itself. What a server needs is imported only for it; raises SettingsError without the extra."""
    engine, there = settings.engine, settings.temporal
    if engine.kind == "embedded":
        return None
    if settings.fleet_pools:
        raise SettingsError(
            "pools of a whole fleet are not kept where Temporal carries tasks",
            what_to_do="give the pool a size per worker, or limit its calls by a rate",
        )
    try:
        temporal = import_module("everstep.adapters.temporal.worker")
    except ImportError as error:
        raise SettingsError(
            f"`engine.kind` is 'temporal', and what that needs is not installed: {error}",
            what_to_do="pip install 'everstep[temporal]'",
        ) from error
    place = temporal.Place(
        address=there.address,
        namespace=there.namespace,
        queue=there.queue,
        calls=engine.tasks,
        silence_s=engine.stale_after_ms / 1000,
    )
    return cast("Driver", temporal.TemporalDriver(place))
