"""The demo plans under siege: `everstep torture` over each of them, with stand-ins for the world.

python -m tests.fault.sieges                  every boundary, and 20 random kills each
"""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from everstep.demos.folder import RIG, DemoFolder
from everstep.demos.scenario import SCENARIOS, prepare, scenario, settle
from everstep.torture.results import Line, Results, verdict

PARTS = dict.fromkeys(("search", "smtp", "mail", "registry", "service", "backup", "web", "site"), 9)
"""Nobody is called, so nobody stands at these ports."""
INPUTS = {
    "research": [],
    "release": ["-i", "repo=repo", "-i", "registry=http://127.0.0.1:9", "-i", "version=1.2.3"],
    "incident": ["-i", "site=http://127.0.0.1:9", "-i", "backup=http://127.0.0.1:9"],
}
ANSWERS = {
    "research": {},
    "release": {},
    "incident": {
        "health": {"status": 503, "json": {"up": False, "seen": "refused"}},
        "decide": {"action": "restart", "because": "it does not come back by itself"},
        "verify": {"status": 200, "json": {"up": True}},
    },
}
"""What a plan reads of its tools, where no schema says it."""


def besiege(name: str, folder: Path, *options: str) -> Line:
    """One demo plan; what `everstep torture --json` said of it."""
    demo = DemoFolder(folder / name)
    chosen = scenario(name)
    prepare(chosen, demo)
    (demo.path / RIG).write_text(json.dumps(PARTS), encoding="utf-8")
    settle(chosen, demo)
    (demo.path / "answers.json").write_text(json.dumps(ANSWERS[name]), encoding="utf-8")
    words = [chosen.bill.plan, *INPUTS[name], "--answers", "answers.json", "--json", *options]
    said = subprocess.run(
        [sys.executable, "-m", "everstep", "-C", str(demo.path), "torture", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    report = json.loads(said.stdout)
    wrong = report.get("violations", [report])
    return {"verdict": verdict(wrong, said.returncode), **report, "violations": wrong}


def main() -> int:
    """All of them."""
    results, wrong = Results.of_this_commit(), 0
    for name in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="es-") as folder:
            line = results.once(f"X.1 {name}", 1, partial(besiege, name, Path(folder), "--kills", "20"))
        wrong += line["verdict"] != "passed"
        figures = {
            key: line.get(key) for key in ("points", "kills", "unreached", "violations", "questions", "recovery_s")
        }
        print(f"{name}: {line['verdict']} {json.dumps(figures)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
