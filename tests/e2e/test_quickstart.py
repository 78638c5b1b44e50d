"""The quickstart of the docs, walked through as it is written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

QUICKSTART = Path(__file__).resolve().parents[2] / "docs/quickstart.md"
KILLED = 137


def test_every_command_does_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"```(console|python|yaml)\n(.*?)```", QUICKSTART.read_text(encoding="utf-8"), re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder, said = tmp_path, ""
    for language, text in blocks:
        if language == "python":
            with (folder / "hello_tools.py").open("a", encoding="utf-8") as tools:
                tools.write(f"\n\n{text}")
        elif language == "yaml":
            (folder / "letter.plan.yaml").write_text(text, encoding="utf-8")
        for line in text.splitlines() if language == "console" else ():
            words = shlex.split(line)
            if words[0] == "cd":
                folder /= words[1]
                continue
            done = subprocess.run(
                words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
            )
            killed = words[0] == "timeout" and done.returncode in (KILLED, -9, 0)
            assert killed or done.returncode == 0, (line, done.stdout, done.stderr)
            said += done.stdout
    assert (folder / "out/hello.txt").read_text(encoding="utf-8") == "Hello, Bo!\n"
    assert "sent: to ana: Hello, ana!" in said
