"""Writes what is generated from code, pages and the dashboard's types; `--check` only says what is stale."""

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from everstep.domain.breaker import BreakerPolicy
from everstep.domain.catalogue import ERROR_CODES, ErrorCode
from everstep.domain.failure import TREATMENT
from everstep.domain.pauses import ANSWERS, TYPE_OF
from everstep.domain.states import ATTEMPT_MOVES, STEP_MOVES, TASK_MOVES
from everstep.doors.api.handlers import HANDLERS
from everstep.doors.api.routes import ROUTES
from everstep.doors.errors import REFUSALS, REMEDIES
from everstep.doors.http.gate import SCOPE_OF

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script finds its own folder only
from scripts.api_types import types_page  # noqa: E402
from scripts.python_pages import examples_page, python_page  # noqa: E402
from scripts.reference_pages import NOTE, cli_page, plan_page, settings_page  # noqa: E402

S = TypeVar("S", bound=StrEnum)


def diagram(moves: Mapping[S, frozenset[S]]) -> str:
    """A state diagram of one table of legal moves; the first row is where it starts."""
    start = next(iter(moves))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start}"]
    for before, after in moves.items():
        lines += [f"    {before} --> {to}" for to in sorted(after)]
        if not after:
            lines.append(f"    {before} --> [*]")
    return "\n".join([*lines, "```"])


def states_page() -> str:
    """Where tasks, steps and attempts may stand, and how they move."""
    parts = [
        "# States",
        NOTE,
        "After this page you can read any status Everstep shows and know what may come next. Every arrow is one",
        "guarded write; a move that is not drawn here is refused with a conflict that names the current state.",
        "",
        "## Task",
        diagram(TASK_MOVES),
        "",
        "## Step",
        diagram(STEP_MOVES),
        "",
        "## Attempt",
        diagram(ATTEMPT_MOVES),
    ]
    return "\n".join(parts) + "\n"


def failures_page() -> str:
    """How each category of failure is treated, and what each pause may be answered with."""
    rows = [
        f"| `{category}` | {rule.retries}{f', {rule.only_if}' if rule.only_if else ''} "
        f"| {(rule.counts_if or 'yes') if rule.counts_for_breaker else 'no'} | {rule.then} |"
        for category, rule in TREATMENT.items()
    ]
    when = {kind: str(one.__doc__).partition("\n")[0] for one, kind in TYPE_OF.items()}
    answers = [
        f"| `{kind}` | {when[kind]} | {', '.join(f'`{word}`' for word in words)} |" for kind, words in ANSWERS.items()
    ]
    parts = [
        "# Failures and pauses",
        NOTE,
        "After this page you know what happens to a failing step, and what you may answer when a task asks.",
        "",
        "| category | retries | counts for the breaker | then |",
        "|---|---|---|---|",
        *rows,
        "",
        "A step's `retry` sets the transient retries; `retry: 0` turns the others off too. When retries are used up,",
        "the step's `fallback`s are tried in order, then its `on_error` decides. After a call that may have acted,",
        "a fallback is tried only in place of a `pure` tool.",
        "",
        "## Circuit breakers",
        "",
        f"Calls of one tool to one target share a breaker. It opens after {BREAKER.failures} counted failures",
        f"in a row, or when {BREAKER.share:.0%} of the last {BREAKER.last} calls (at least {BREAKER.least})",
        f"within {BREAKER.window_ms // 1000} s failed. It stays open for {BREAKER.cool_down_ms // 1000} s,",
        f"each time twice as long up to {BREAKER.max_cool_down_ms // 1000} s, then lets one probe through at a time;",
        f"{BREAKER.close_after} successes close it. A step that meets an open breaker goes on with its fallback, else",
        "it waits, which costs no retry. `everstep breakers` shows and resets them. Steps with `breaker: NAME` share",
        "one of that name; `[breakers.NAME]` gives it rules of its own (`failures`, `cool_down`, …).",
        "",
        "## Pauses",
        "",
        "| pause | when | answers |",
        "|---|---|---|",
        *answers,
    ]
    return "\n".join(parts) + "\n"


def errors_page() -> str:
    """Every code: what it means, how it counts, what to do."""
    steps = [
        f"| `{code}` | {row.category} | {row.effect_state} | {row.title} | {row.what_to_do} |"
        for code, row in sorted(ERROR_CODES.items())
        if not code.startswith("http_")
    ]
    groups: dict[ErrorCode, list[str]] = {}
    for code, row in ERROR_CODES.items():
        if code.startswith("http_"):
            groups.setdefault(row, []).append(code.removeprefix("http_"))
    answers = [
        f"| {_statuses(codes)} | {row.category} | {row.effect_state} | {row.title} | {row.what_to_do} |"
        for row, codes in groups.items()
    ]
    refused = [
        f"| `{code}` | {row.status} | {row.exit} | {row.title} | {REMEDIES[code]} |" for code, row in REFUSALS.items()
    ]
    parts = [
        "# Error codes",
        NOTE,
        "After this page you know what any code means and what to do about it. `everstep explain CODE` says the same.",
        "",
        "## Of a step",
        "How each category is treated: [failures](../concepts/failures.md). `effect`: whether the call may have acted.",
        "",
        "| code | category | effect | what happened | what to do |",
        "|---|---|---|---|---|",
        *steps,
        *answers,
        "",
        "## Of a request or command",
        "",
        "| code | HTTP | exit | what happened | what to do |",
        "|---|---|---|---|---|",
        *refused,
    ]
    return "\n".join(parts) + "\n"


def http_page() -> str:
    """Every route, out of the table that every door reads."""
    rows = [
        f"| `{route.method} {route.path}` | {SCOPE_OF[route.scope] or 'open'} | {_names(route.query)} "
        f"| {_names(route.body)} | {_first_line(HANDLERS[route.handler].__doc__)} |"
        for route in ROUTES
    ]
    parts = [
        "# HTTP",
        NOTE,
        "After this page you can do over HTTP whatever the command line does. `everstep serve` answers at",
        "`http://127.0.0.1:7717`; `GET /v1/openapi.json` is the same as OpenAPI 3.1, with the shapes of all objects.",
        "",
        "Every request carries `Authorization: Bearer TOKEN`; the local user's is in `.everstep/token`, others are",
        "made by `everstep token new`. A body is JSON, and names that are not listed are refused. Every refusal is",
        "`application/problem+json` with a [code](errors.md). Lists go on with `cursor`, which is opaque.",
        "`Idempotency-Key` on `POST /v1/tasks`, `fork` and `undo`: the same key is the same task. `If-Match` with a",
        "task's `ETag` on any command: only if nothing has changed since.",
        "",
        "| route | scope | query | body | what it does |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join(parts) + "\n"


def security_page() -> str:
    """What the repository says of it, where readers of the docs find it."""
    title, _, text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("\n")
    said = "After this page you know what Everstep holds against attacks, and what it does not."
    return f"{title}\n{NOTE}\n{said}\n{text.replace('](docs/', '](')}"


def decisions_page() -> str:
    """Every decision record, by its title."""
    parts = [
        "# Decisions",
        NOTE,
        "After this page you know why things are as they are. Each record has at most forty lines: the question, the",
        "choice, its reasons and cost, and what would change our mind. A record is never edited; a later one says what",
        "it replaces.",
        "",
    ]
    for record in sorted((ROOT / "docs" / "adr").glob("*.md")):
        number, _, title = record.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        if number != str(int(record.name[:4])):
            raise SystemExit(f"{record.name} begins with '# {int(record.name[:4])}. TITLE'")
        parts.append(f"{number}. [{title}](adr/{record.name})")
    return "\n".join(parts) + "\n"


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in sorted(names))


def _first_line(told: str | None) -> str:
    return (told or "").strip().splitlines()[0].replace("|", "\\|")


def _statuses(codes: list[str]) -> str:
    """Few by name, a hundred of them by their hundred."""
    hundred = codes[0][0]
    many = len(codes) > MANY
    named = [f"`http_{code}`" for code in codes if not many or code[0] != hundred]
    return ", ".join([f"any other `http_{hundred}xx`", *named] if many else named)


BREAKER: Final = BreakerPolicy()
MANY: Final = 20
PAGES: Final = {
    "docs/decisions.md": decisions_page,
    "docs/security.md": security_page,
    "docs/concepts/states.md": states_page,
    "docs/concepts/failures.md": failures_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/http.md": http_page,
    "docs/reference/settings.md": settings_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/plan.md": plan_page,
    "docs/reference/python.md": python_page,
    "docs/examples.md": examples_page,
    "dashboard/src/data/api.gen.ts": types_page,
}


def main(*, check: bool) -> int:
    """Write every page, or name the stale ones."""
    stale = []
    for name, page in PAGES.items():
        path = ROOT / name
        text = page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{'stale, run make docs' if check else 'written'}: {name}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
