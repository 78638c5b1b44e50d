"""`everstep plan`: list, check, format and show plans, write their JSON Schema, and what a model needs to write one."""

import sys
from typing import Any, TypeAlias

import click

from everstep.doors.cli.checking import asks_line, find_problems, refusal_of, tell_checked
from everstep.doors.cli.connect import Opening, perform_steps
from everstep.doors.cli.formatting import formatted, write_file
from everstep.doors.cli.given import read_inputs
from everstep.doors.cli.outline import expected_lines, outline
from everstep.doors.cli.plan_writing import ls, prompt, schema
from everstep.doors.cli.session import session
from everstep.doors.cli.talk import ask, path_of
from everstep.doors.cli.targets import Target, find_target
from everstep.doors.cli.verbs import Group
from everstep.doors.cli.words import output_text, safe

Json: TypeAlias = dict[str, Any]

EXIT_INVALID = 3


@click.group(cls=Group, name="plan")
def plan() -> None:
    """List, check, format and show plans; write their JSON Schema."""


@plan.command(epilog="everstep plan check brief.plan.yaml\ncat brief.plan.yaml | everstep plan check -")
@click.argument("files", nargs=-1, required=True, metavar="FILE…|-")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
def check(files: tuple[str, ...], *, strict: bool) -> int:
    """Find every problem of a plan before anything starts; exit 3 if there is one."""

    async def act(opening: Opening) -> int:
        session, checked = opening.session, []
        for file in files:
            target = find(file, opening)
            connection = await opening.judge(target.tools)
            found = await find_problems(connection, target)
            invalid = not found["valid"] or (strict and bool(found["problems"]))
            summary = found.get("summary") or {}
            more = {name: summary.get(name) or [] for name in ("asks", "untrusted")}
            checked.append({"valid": not invalid, "problems": found["problems"], **more})
            if not session.json:
                tell_checked(session, target, found, invalid=invalid)
        if session.json:
            session.result_json(checked[0] if len(checked) == 1 else {"items": checked})
        return 0 if all(one["valid"] for one in checked) else EXIT_INVALID

    return perform_steps(act)


def find(file: str, opening: Opening) -> Target:
    """A plan by file, name or module; `-` is stdin."""
    if file == "-":
        return Target(said="-", text=sys.stdin.read(), file="stdin")
    return find_target(file, opening.settings)


@plan.command(name="show", epilog="everstep plan show brief.plan.yaml\neverstep plan show agent:plan")
@click.argument("target", metavar="PLAN")
def show_plan(target: str) -> int:
    """Show what a plan would do: inputs, steps in order, outputs."""

    async def act(opening: Opening) -> int:
        session = opening.session
        found = find(target, opening)
        connection = await opening.judge(found.tools)
        checked = await find_problems(connection, found)
        spec = found.spec
        if spec is None:
            raise refusal_of(found, checked, f"'{target}' cannot be read")
        from everstep.wire.plan import digest, to_json

        if session.json:
            session.result_json(to_json(spec))
            return 0
        session.result(f"{safe(spec.title or spec.name)}   plan {spec.name}")
        if spec.description:
            session.result(safe(spec.description))
        for one in spec.inputs:
            more = "required" if one.required else f"default {output_text(one.schema['default'])}"
            session.result(f"  input {one.name}: {one.schema.get('type')}, {more}")
        for line in outline(spec, (await ask(connection, "GET", path_of("tools")))["items"]):
            session.result(line)
        for name, value in spec.outputs.items():
            session.result(f"  output {name}: {safe(output_text(value))}")
        if hint := asks_line(checked):
            session.result(f"  {hint}")
        session.result(f"  {digest(spec)}")
        return 0

    return perform_steps(act)


@plan.command(epilog="everstep plan estimate brief.plan.yaml -i topic=solar")
@click.argument("target", metavar="PLAN")
@click.option("-i", "--input", "given", metavar="K=V", multiple=True, help="An input; K:=JSON, K=@FILE.")
def estimate(target: str, given: tuple[str, ...]) -> int:
    """Say how long a plan would take, as far as history and guesses go. Starts nothing."""

    async def act(opening: Opening) -> int:
        session = opening.session
        found = find(target, opening)
        connection = await opening.remembering(found.tools)
        checked = await find_problems(connection, found)
        if not checked["valid"]:
            raise refusal_of(found, checked, f"'{target}' cannot be carried out")
        inputs = read_inputs(given, None, found.spec)
        expected = await ask(connection, "POST", path_of("estimates"), {**found.body(), "inputs": inputs})
        if session.json:
            session.result_json(expected)
            return 0
        for line in expected_lines(expected):
            session.result(line)
        return 0

    return perform_steps(act)


@plan.command(epilog="everstep plan fmt brief.plan.yaml\neverstep plan fmt brief.plan.yaml --to json > brief.plan.json")
@click.argument("file")
@click.option("--to", "syntax", type=click.Choice(["yaml", "json"]), help="Print it in this spelling instead.")
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 if it would.")
@click.option("--drop-comments", is_flag=True, help="Comments are lost; without this such a file is refused.")
def fmt(file: str, syntax: str | None, *, only_check: bool, drop_comments: bool) -> int:
    """Write a plan in its normal spelling. Never changes what it means."""
    text, new = formatted(file, syntax, drop_comments=drop_comments)
    if only_check:
        if text != new:
            session().warn(f"{file} would be formatted")
        return int(text != new)
    if syntax is not None or file == "-":
        sys.stdout.write(new)
    elif text != new:
        write_file(file, new)
        session().say(f"formatted {file}")
    return 0


for one in (ls, prompt, schema):
    plan.add_command(one)
