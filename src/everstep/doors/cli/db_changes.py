"""`everstep db migrate`, `move`, `prune`: what changes a store as a whole."""

import asyncio
from typing import Final

import click

from everstep.bootstrap import lower_store, migrate_store, move_store
from everstep.domain.errors import NotFound
from everstep.domain.ids import Instant
from everstep.doors.cli.bench import open_housekeeping, open_keeping
from everstep.doors.cli.confirm import confirm
from everstep.doors.cli.connect import Opening, perform_steps, shown
from everstep.doors.cli.session import Session
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import plural
from everstep.ports.housekeeping import Housekeeping, clean_up
from everstep.settings import Settings
from everstep.settings.place import shown_store

DRY_MAX: Final = 1_000_000


@click.command(cls=Verb, epilog="everstep db migrate --store postgresql://db.example/tasks\neverstep db migrate --down")
@click.option("--down", is_flag=True, help="One step back instead, for the program before this one.")
def migrate(*, down: bool) -> int:
    """Bring the schema of the store forward to this version; the one command that changes that of a PostgreSQL."""

    async def act(opening: Opening) -> int:
        current, settings = opening.session, opening.settings
        if down:
            return await _lower(current, settings)
        confirm(current, f"Change the schema of {shown(settings)}?", "everstep db migrate")
        steps = 0
        if settings.store_path is None:
            steps = await asyncio.to_thread(migrate_store, settings)
        async with open_keeping(settings) as store:
            version = (await store.info()).schema_version
        if current.json:
            current.result_json({"steps": steps, "schema_version": version})
        else:
            current.result(f"schema {version}" + (f", after {plural(steps, 'step')}" if steps else ", nothing to do"))
        return 0

    return perform_steps(act)


async def _lower(current: Session, settings: Settings) -> int:
    """What only the newer schema can hold is gone then: hence the copy of a file, and the question."""
    must_exist(settings)
    confirm(current, f"Take the schema of {shown(settings)} one step back?", "everstep db migrate --down")
    version = await asyncio.to_thread(lower_store, settings)
    if current.json:
        current.result_json({"steps": -1, "schema_version": version})
    else:
        current.result(f"schema {version}; this program brings it forward again: everstep db migrate")
        if settings.store_path is not None:
            current.say(f"  copy  {settings.store_path.parent / 'backups'}", "dim")
    return 0


@click.command(cls=Verb, epilog="everstep db move postgresql://db.example/tasks")
@click.argument("target_url")
def move(target_url: str) -> int:
    """Move this store, tasks in flight included, into the empty file or PostgreSQL TARGET_URL; it is closed then."""

    async def act(opening: Opening) -> int:
        current, settings = opening.session, opening.settings
        must_exist(settings)
        place = shown_store(target_url)
        again = place if place == target_url else "TARGET_URL"  # who signs in there is not shown
        confirm(current, f"Move {shown(settings)} to {place}?", f"everstep db move {again}")
        tasks = await asyncio.to_thread(move_store, settings, target_url)
        if current.json:
            current.result_json({"moved": tasks, "to": place})
        else:
            current.result(f"{plural(tasks, 'task')} moved to {place}")
            current.say(f'  go on there: store = "{place}" in everstep.toml, or --store')
        return 0

    return perform_steps(act)


@click.command(cls=Verb, epilog="everstep db prune --dry-run")
@click.option("--dry-run", is_flag=True, help="Only say how many would go.")
def prune(*, dry_run: bool) -> int:
    """Delete tasks that ended longer ago than `retention` says; their keys stay taken for `retention.keys`."""

    async def act(opening: Opening) -> int:
        current, settings = opening.session, opening.settings
        must_exist(settings)
        if not dry_run:
            confirm(current, f"Delete old tasks of {shown(settings)}?", "everstep db prune")
        async with open_housekeeping(settings) as (housekeeping, now):
            gone = await (_old if dry_run else _prune)(housekeeping, settings, now)
        if current.json:
            current.result_json({"deleted": {} if dry_run else gone, "would_delete": gone if dry_run else {}})
        else:
            counts = ", ".join(f"{count} {status}" for status, count in gone.items() if count) or "nothing"
            current.result(f"{'would delete' if dry_run else 'deleted'} {counts}")
        return 0

    return perform_steps(act)


async def _prune(keep: Housekeeping, settings: Settings, now: Instant) -> dict[str, int]:
    gone = await clean_up(keep, settings.limits.retention, settings.limits.keys_ms, now)
    return {status.value: count for status, count in gone.items()}


async def _old(keep: Housekeeping, settings: Settings, now: Instant) -> dict[str, int]:
    """How many would go."""
    kept = settings.limits.retention
    return {status.value: len(await keep.ended(status, Instant(now - age), DRY_MAX)) for status, age in kept.items()}


def must_exist(settings: Settings) -> None:
    """There has to be something to look after; raises NotFound."""
    path = settings.store_path
    if path is not None and not path.exists():
        raise NotFound(f"there is no store {shown(settings)}", what_to_do="the first `everstep run` makes it")
