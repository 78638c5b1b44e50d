"""`everstep mcp add`, a task that calls what was let in, a server that changes, `everstep mcp accept`."""

import shutil
import sys
from pathlib import Path

from tests.e2e.commands import Project

HOSTILE = Path(__file__).parents[1] / "unit/adapters/remote/hostile_server.py"
PLAN = """
name: remote
steps:
  - {id: say, tool: mcp.other.echo, with: {text: hello}, retry: 0}
outputs: {said: "${say.text}"}
"""


def test_a_server_is_let_in_changes_and_is_let_in_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    shutil.copy(HOSTILE, tmp_path / "server.py")
    (tmp_path / "everstep.toml").write_text("[containment]\nuid_base = 0\n")
    (tmp_path / "remote.yaml").write_text(PLAN)
    refused = project.run("mcp", "add", "other", "--", sys.executable, "server.py")
    assert refused.code == 2
    assert "--yes" in refused.err
    added = project.run("mcp", "add", "other", "--yes", "--json", "--", sys.executable, "server.py")
    assert added.code == 0, added.err
    assert added.json["effects"] == {"echo": "pure", "wreck": "once", "drop": "once"}
    assert 'effects = { "echo" = "pure" }' in (tmp_path / "everstep.toml").read_text()
    again = project.run("mcp", "add", "other", "--yes", "--", sys.executable, "server.py")
    assert again.code != 0
    assert "already" in again.err
    ran = project.run("run", "remote.yaml", "--json")
    assert ran.code == 0, ran.err
    assert "hello" in ran.out
    words = (tmp_path / "server.py").read_text()
    (tmp_path / "server.py").write_text(words.replace("Say it again", "Say it to me"))
    changed = project.run("run", "remote.yaml", "--json")
    assert "tool_changed" in changed.out + changed.err
    accepted = project.run("mcp", "accept", "other", "--json")
    assert accepted.json["changed"] == ["echo"]
    assert project.run("run", "remote.yaml", "--json").code == 0
    assert "there is no server" in project.run("mcp", "accept", "nobody").err
