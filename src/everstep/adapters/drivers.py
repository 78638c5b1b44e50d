"""Who carries tasks, as the settings say: this engine itself, or a server outside."""

from typing import cast

from everstep.adapters.extras import extra_part
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
    temporal = extra_part("everstep.adapters.temporal.worker", "temporal", "`engine.kind` is 'temporal'")
    place = temporal.Place(
        address=there.address,
        namespace=there.namespace,
        queue=there.queue,
        calls=engine.tasks,
        silence_s=engine.stale_after_ms / 1000,
    )
    return cast("Driver", temporal.TemporalDriver(place))
