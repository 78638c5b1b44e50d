"""Release: somebody rejects the first version; a fork keeps the tests and releases the next."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from everstep.demos.folder import WORLD, DemoFolder
from everstep.demos.scenario import Ask, Bill, Json, Scenario, Words
from everstep.domain.errors import EverstepError
from everstep.torture.ledger import Expected

REPO: Final = "repo"
FIRST, SECOND = "1.1.0", "1.2.0"
SETTINGS: Final = """
[shell.commands.sh]     # programs run without a shell line; each argument must match
program = "/bin/sh"
arguments = ['[\\w.]+']

[http.targets.registry] # it honours a key, so a call may be sent again
url = "http://127.0.0.1:{port}"
idempotency_header = "Idempotency-Key"

[policy]
networks = ["127.0.0.1/32:{port}"]
"""
_TOLD: Final = f"""printf '{{"step": "%s", "version": "%s"}}\\n' $1 $2 >> ../{WORLD}"""
FILES: Final = {
    "VERSION": "1.0.0\n",
    "greet.sh": "echo hello, world\n",
    "told.sh": f"{_TOLD}\n",
    "test.sh": 'sh told.sh tests -\nsleep 0.4\ntest "$(sh greet.sh)" = "hello, world" && echo 1 passed\n',
    "bump.sh": 'echo "$1" > VERSION\nsh told.sh bump "$1"\nsleep 0.4\necho "$1"\n',
}
HOOK: Final = f"""#!/bin/sh
[ "$1" = committed ] || exit 0
while read old new ref; do
  case $ref in refs/tags/*) printf '{{"step": "tag", "ref": "%s"}}\\n' "$ref" >> ../{WORLD};; esac
done
"""


class Release:
    """Five effects, one of each kind."""

    bill = Bill(
        name="release",
        plan="release.plan.yaml",
        tools=("everstep.demos.release.tools",),
        killed_in="tests",
        marked="bump",
        effects=(
            Expected("tests", repeatable=True),
            Expected("bump", times=2),
            Expected("tag"),
            Expected("publish"),
        ),
        labels={
            "tests": "tests of the repository",
            "bump": f"versions {FIRST} and {SECOND} written",
            "tag": "tag in the repository",
            "publish": "release in the registry",
        },
        world="everstep.demos.release.world",
    )

    def prepare(self, folder: DemoFolder) -> None:
        """A repository with tests, and a hook that sees every tag."""
        if shutil.which("git") is None:
            raise EverstepError("this demo needs git", code="config_invalid", what_to_do="install git")
        repo = folder.path / REPO
        repo.mkdir()
        for name, text in FILES.items():
            (repo / name).write_text(text.replace("0.4", "0.4"), encoding="utf-8")
        (folder.path / WORLD).touch()
        _git(folder, "init", "-q", "-b", "main")
        for name, value in (("user.name", "Ana"), ("user.email", "ana@example.test"), ("commit.gpgsign", "false")):
            _git(folder, "config", name, value)
        _git(folder, "add", ".")
        _git(folder, "commit", "-qm", "A greeting")
        hook = repo / ".git/hooks/reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK, encoding="utf-8")
        hook.chmod(0o700)

    def settings(self, parts: Mapping[str, int]) -> str:
        """Programs that may run, and a registry."""
        return SETTINGS.replace("{port}", str(parts["registry"]))

    def begin(self, folder: DemoFolder) -> Words:
        """The same plan and inputs: the same task."""
        registry = f"http://127.0.0.1:{folder.rig['registry']}"
        return self._run({"repo": REPO, "registry": registry, "version": FIRST})

    def _run(self, inputs: Mapping[str, str]) -> Words:
        return ["run", self.bill.plan, *(word for item in inputs.items() for word in ("-i", "=".join(item)))]

    def answer(self, folder: DemoFolder, pause: Json, ask: Ask) -> tuple[str, Words]:
        """Ana wants the other version; and looks into the file when she is asked whether it was written."""
        if pause["reason"]["type"] == "approvalRequired":
            if FIRST in pause["title"]:
                why = f"there are new features: it should be {SECOND}"
                return f"\n{pause['title']} ana rejects: {why}", ["reject", pause["id"], "--note", why]
            return f"\n{pause['title']} ana approves", ["approve", pause["id"], "--note", "the diff is right"]
        wanted = json.loads(ask("show", pause["task"], "--json"))["inputs"]["version"]
        written = sum(line["step"] == "bump" and line["version"] == wanted for line in folder.world())
        said = f"\n{pause['title']} ana looks: {REPO}/VERSION {'says' if written else 'does not say'} {wanted}"
        words = ["happened", "--value", json.dumps(_ended(wanted))] if written else ["not_happened"]
        return said, ["answer", pause["id"], *words, "--note", "looked into the file"]

    def after(self, code: int, ask: Ask) -> tuple[str, Words] | None:
        """Rejected: a fork from `bump` on, which keeps what the tests said."""
        if code == 0:
            return None
        forked = json.loads(ask("fork", "@last", "--from", "bump", "-i", f"version={SECOND}", "--detach", "--json"))
        said = f"\neverstep fork @last --from bump -i version={SECOND}   the tests are not run again"
        return said, self._run(forked["inputs"])


def _git(folder: DemoFolder, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder.path / REPO), *words], check=True, capture_output=True)  # noqa: S603, S607


def _ended(said: str) -> Json:
    """What the command would have told."""
    out = f"{said}\n"
    told = {"exit_code": 0, "signal": None, "timed_out": False, "stdout": out, "stderr": "", "truncated": False}
    return {**told, "stdout_bytes": len(out), "stderr_bytes": 0, "sha256": sha256(out.encode()).hexdigest()}


SCENARIO: Final[Scenario] = Release()
