"""`everstep tools check`: the conformance suite over tools as they are configured here."""

from everstep.bootstrap import adapters_of
from everstep.domain.errors import NotFound
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.connect import Opening, perform_steps, settings_of
from everstep.doors.cli.session import session
from everstep.doors.cli.words import plural
from everstep.ports.tool import ToolAdapter
from everstep.testing.conformance.tool import Finding, check_adapter
from everstep.wire.values import Codec


def check_tools(name: str | None) -> int:
    """Check the family that serves this tool, or all; exit 1 if something does not hold."""
    current = session()
    families = [adapter for adapter in adapters_of(settings_of(current), (), Codec()) if _serves(adapter, name)]
    if not families:
        known = [spec.name for adapter in adapters_of(settings_of(current), (), Codec()) for spec in adapter.tools()]
        raise NotFound(did_you_mean(f"no tool '{name}'", suggest(name or "", known)), what_to_do="everstep tools")

    async def act(_opening: Opening) -> int:
        found = [(adapter, await check_adapter(adapter)) for adapter in families]
        bad = sum(finding.status == "failed" for _, findings in found for finding in findings)
        if current.json:
            current.result_json({"ok": not bad, "tools": [_data(adapter, findings) for adapter, findings in found]})
            return 1 if bad else 0
        for adapter, findings in found:
            current.result(", ".join(spec.name for spec in adapter.tools()))
            for finding in findings:
                current.result(f"  {finding}")
        left = sum(finding.status == "not_run" for _, findings in found for finding in findings)
        held = f"{bad} do not hold" if bad else "all that was checked holds" if left else "all hold"
        current.say(held, "red" if bad else "green")
        if left:
            current.say(f"{plural(left, 'check')} had no calls to try: a ToolAdapter gives them by `cases()`", "dim")
        return 1 if bad else 0

    return perform_steps(act)


def _serves(adapter: ToolAdapter, name: str | None) -> bool:
    """A family whose tools are all off is not asked."""
    return any(name in {None, spec.name} for spec in adapter.tools())


def _data(adapter: ToolAdapter, findings: tuple[Finding, ...]) -> dict[str, object]:
    return {
        "tools": [spec.name for spec in adapter.tools()],
        "checks": [
            {"check": one.check, "what": one.what, "status": one.status, "problems": [*one.problems]}
            for one in findings
        ],
    }
