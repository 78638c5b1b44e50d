"""`everstep plan ls`, `prompt`, `schema`: what is there already, and what models and editors need to write more."""

import json

import click

from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.formatting import write_file
from everstep.doors.cli.plan_list import find_all, lines_of
from everstep.doors.cli.plan_prompt import prompt_for
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb


@click.command(cls=Verb, epilog="everstep plan ls\neverstep plan ls --json | jq .items[].name")
def ls() -> int:
    """List the plans and durable functions that can be started by name."""

    async def act(opening: Opening) -> int:
        session = opening.session
        found = await find_all(opening)
        if session.json:
            session.result_json({"items": found, "next_cursor": None})
            return 0
        for line in lines_of(found):
            session.result(line)
        wrong = next((one["file"] or one["name"] for one in found if not one["valid"]), None)
        more = "everstep plan show NAME" if found else "make a first one: everstep init"
        session.say(f"what is wrong: everstep plan check {wrong}" if wrong else more, "dim")
        return 0

    return perform_steps(act)


@click.command(
    cls=Verb,
    epilog="""
    everstep plan prompt "Every morning, mail me the headlines of our blog" | your-model > news.plan.yaml
    everstep plan check news.plan.yaml
    """,
)
@click.argument("goal")
@click.option("--out", metavar="FILE", help="Write it there.")
def prompt(goal: str, out: str | None) -> int:
    """Print what a language model needs to write a plan for GOAL. Calls none.

    That is the goal, how plans are written, their JSON Schema, and the tools of this project.
    """

    async def act(connection: Connection, session: Session) -> int:
        names = [one["name"] for one in (await ask(connection, "GET", path_of("tools")))["items"]]
        text = prompt_for(goal, [await ask(connection, "GET", path_of("tools", name)) for name in names])
        if out is not None:
            write_file(out, text)
        if session.json:
            session.result_json({"prompt": text})
        elif out is None:
            session.pour(text)
        session.say("check what it writes: everstep plan check FILE", "dim")
        return 0

    if not goal.strip():
        raise click.UsageError("say what the plan is for")
    return perform(Need.JUDGE, act)


@click.command(cls=Verb, epilog="everstep plan schema --out .everstep/plan.schema.json")
@click.option("--out", metavar="FILE", help="Write it there, for the editor.")
def schema(out: str | None) -> int:
    """Print the JSON Schema of plans, with this project's tools."""

    async def act(connection: Connection, session: Session) -> int:
        found = await ask(connection, "GET", path_of("schemas", "plan"))
        text = json.dumps(found, ensure_ascii=False, indent=None if session.json else 2)
        if out is None:
            session.result(text)
        else:
            write_file(out, f"{text}\n")
            session.say(f"first line for your plans: # yaml-language-server: $schema={out}")
        return 0

    return perform(Need.JUDGE, act)
