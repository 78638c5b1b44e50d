"""`everstep demo`: a task that is killed in the middle, and goes on. Offline, in a folder of its own."""

from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from everstep.bootstrap import run_process
from everstep.demos.folder import FOLDER, DemoFolder
from everstep.demos.scenario import SCENARIOS, Bill, prepare, scenario
from everstep.demos.stage import Performance, Stage, StageError
from everstep.domain.errors import EverstepError
from everstep.doors.cli.given import reason
from everstep.doors.cli.render import table
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.torture.ledger import Entry

Json: TypeAlias = dict[str, Any]

FAST: Final = 0.25
KILLS: Final = 5
EXIT_INTERRUPTED: Final = 130


@click.command(
    cls=Verb,
    epilog="""
    everstep demo
    everstep demo --chaos --kills 10 --seed 7
    everstep demo mcp-handoff
    everstep demo --kills 0      (then kill it yourself: kill -9, and the same command again)
    """,
)
@click.argument("name", type=click.Choice([*SCENARIOS, "mcp-handoff"]), default="research")
@click.option("--fast", is_flag=True, help="A quarter of the time.")
@click.option("--chaos", is_flag=True, help="Kill it again and again, and hold the world against the journal.")
@click.option("--kills", type=click.IntRange(0, 50), metavar="N", help=f"How often [1; with --chaos {KILLS}].")
@click.option("--seed", type=int, default=1, show_default=True, help="Which moments.")
@click.option("--keep", is_flag=True, help=f"Leave {FOLDER}/ there to look around in.")
def demo(name: str, *, fast: bool, chaos: bool, kills: int | None, seed: int, keep: bool) -> int:
    """Watch a task being killed in the middle and going on where it stopped. No key, no network."""
    current = session()
    if name == "mcp-handoff":
        return handed_over(current)
    chosen, folder = scenario(name), DemoFolder(Path(FOLDER))
    try:
        cut_short = prepare(chosen, folder)
    except OSError as error:
        raise EverstepError(
            f"cannot write to {FOLDER}/: {reason(error)}", code="forbidden", what_to_do="go to a folder of your own"
        ) from error
    pace = FAST if fast else 1.0
    stage = Stage(chosen, folder, pace=pace, say=lambda text: remark(current, text), quiet=current.json)
    try:
        if chaos:
            done = stage.chaos(KILLS if kills is None else kills, seed)
        else:
            if cut_short:
                remark(current, "the last demo was cut short; it goes on where it stopped:")
            done = stage.play(kill=not cut_short and kills != 0)
    except StageError as error:
        return stopped(current, error)
    tell(current, done, chosen.bill, cut_short=cut_short, chaos=chaos)
    folder.finish(keep=keep)
    if not current.json:
        close(current, folder, name, keep=keep)
    return 0 if done.passed else 1


def handed_over(session: Session) -> int:
    """A plan over MCP that the server cannot finish, and the client does."""
    from everstep.doors.mcp.demo import play

    complete = run_process(play(session.say))
    if session.json:
        session.result_json({"type": "result", "ok": complete, "exit_code": 0 if complete else 1})
    return 0 if complete else 1


def stopped(session: Session, error: StageError) -> int:
    """The child has said why; the folder stays, so the same command goes on."""
    if session.json:
        session.result_json({"type": "result", "ok": False, "exit_code": error.code, "error": {"message": str(error)}})
    elif error.said:
        session.warn(error.said)
    if error.code == EXIT_INTERRUPTED:
        session.warn("go on: everstep demo")
    return error.code if error.code > 0 else 1


def remark(session: Session, text: str) -> None:
    """Words of the one who kills."""
    session.say(text, "yellow")


def tell(session: Session, done: Performance, bill: Bill, *, cut_short: bool, chaos: bool) -> None:
    """The effects ledger: expected, made in the world, recorded."""
    if session.json:
        session.result_json(result_of(done))
        return
    if chaos or cut_short or done.kills:
        session.say("")
        for line in ledger_lines(done, bill, by_hand=cut_short):
            session.say(line)


def result_of(done: Performance) -> Json:
    """The same for programs."""
    effects = [
        {"effect": one.effect.name, "expected": one.expected, "made": one.made, "recorded": one.recorded}
        for one in done.ledger.entries
    ]
    figures = {"kills": done.kills, "recoveries": done.recoveries, "repeated": done.repeated}
    code = 0 if done.passed else 1
    return {
        "type": "result", "ok": done.passed, "exit_code": code, "task": {"id": done.task}, **figures,
        "ledger": {**done.ledger.as_json(), "effects": effects},
    }  # fmt: skip


def ledger_lines(done: Performance, bill: Bill, *, by_hand: bool = False) -> list[str]:
    """A table of three columns that have to agree, and the zeros."""
    rows = [("effect", "expected", "made in the world", "recorded")]
    rows += [
        (_name(one, bill), f"{one.expected:>8}", f"{one.made:>17}", f"{one.recorded:>8}") for one in done.ledger.entries
    ]
    found = done.ledger
    kills = "killed by hand" if by_hand and not done.kills else f"kills {done.kills}"
    zeros = (
        f"{kills} · recoveries {done.recoveries} · outcomes executed again {done.repeated}"
        f" · duplicates {len(found.doubled)} · lost {len(found.lost)} · asked {found.asked}"
    )
    return [*table(rows), f"{zeros}      {'PASS' if done.passed else 'FAIL'}"]


def _name(one: Entry, bill: Bill) -> str:
    again = " (interrupted, so called again)" if one.made > one.expected and one.effect.repeatable else ""
    return bill.labels.get(one.effect.name, one.effect.name.replace("_", " ")) + again


def close(session: Session, folder: DemoFolder, name: str, *, keep: bool) -> None:
    """What happened, where to look, what next."""
    where = (
        f"everstep -C {folder.path} show @last"
        if keep
        else f"everstep demo {name} --keep, then everstep -C {FOLDER} show @last"
    )
    session.say(f"\nlook around   {where}")
    session.say(f"harder        everstep demo {name} --chaos")
    session.say("your own      everstep init")
