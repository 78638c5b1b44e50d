"""`everstep version`: what this is made of."""

import platform

import click

from everstep.domain.version import __version__
from everstep.doors.cli.session import session
from everstep.doors.cli.verbs import Verb


@click.command(cls=Verb)
def version() -> None:
    """Versions of everstep and its parts."""
    import apsw

    parts = {
        "version": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": platform.platform(terse=True),
    }
    if session().json:
        session().result_json(parts)
    else:
        session().result(f"everstep {parts['version']}")
        session().result(f"Python {parts['python']}, SQLite {parts['sqlite']}, {parts['system']}")
