"""`everstep db migrate`: what changes a store as a whole."""

import asyncio

import click

from everstep.bootstrap import migrate_store
from everstep.doors.cli.bench import open_keeping
from everstep.doors.cli.confirm import confirm
from everstep.doors.cli.connect import Opening, perform_steps, shown
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import plural


@click.command(cls=Verb, epilog="everstep db migrate --store postgresql://db.example/tasks")
def migrate() -> int:
    """Bring the schema of the store forward to this version; the one command that changes that of a PostgreSQL."""

    async def act(opening: Opening) -> int:
        current, settings = opening.session, opening.settings
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
