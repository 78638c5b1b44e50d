"""No listing of settings holds a secret, however it came to stand there."""

import pytest

from everstep.domain.values import JsonValue
from everstep.settings.shown import HIDDEN, shown


@pytest.mark.parametrize(
    ("key", "value", "seen"),
    [
        ("audit.key", "hush-hush-hush", HIDDEN),
        ("audit.key", "", ""),
        ("store", "work.db", "work.db"),
        ("store", "postgresql://me:hush@db:5433/tasks?password=hush", "postgresql://db:5433/tasks"),
        ("store", "postgresql://me:hu/sh@db/tasks", f"postgresql://{HIDDEN}"),
        ("store", "name=1.db", "name=1.db"),
        ("engine.listen_dsn", "host=db password = hush", HIDDEN),
        ("server", "https://me:hu/sh@tasks.example", f"https://{HIDDEN}"),
        ("server", "https://me:hu#sh@tasks.example", f"https://{HIDDEN}"),
        ("mail.server", "smtp://me:hush@mail.example:587", "smtp://mail.example:587"),
        ("server", "https://me:hush@tasks.example/a?token=hush#hush", f"https://tasks.example/a?{HIDDEN}"),
        ("server", "https://tasks.example/a", "https://tasks.example/a"),
        ("search.providers.own", "https://me:hush@search.example", "https://search.example"),
        ("mail.lookup", "https://mail.example/{message_id}?key=hush", f"https://mail.example/{{message_id}}?{HIDDEN}"),
        ("notify.webhook", "https://hooks.example/T1/hush", f"https://hooks.example/{HIDDEN}"),
        ("notify.webhook", "hush", HIDDEN),
        ("notify.webhook", "https://[hooks/hush", f"https://[hooks/{HIDDEN}"),
        ("store", "postgresql://[db/tasks", "postgresql://[db/tasks"),
        ("webhook.targets.team.url", "https://me:hush@hooks.example/hush", f"https://hooks.example/{HIDDEN}"),
        ("webhook.targets.team.secrets", ["team_key", "Hush-hush"], ["team_key", HIDDEN]),
        ("http.targets.api.auth", "secret:api", "secret:api"),
        ("http.targets.api.auth", "ghp_Hush", HIDDEN),
        ("llm.endpoints.own.auth", "own_key", "own_key"),
        ("mail.auth", "anna:mail_password", "anna:mail_password"),
        ("mail.auth", "anna:Hush!", f"anna:{HIDDEN}"),
        ("mcp.servers.gh.auth", "hush", HIDDEN),
        ("mcp.servers.gh.auth", "secret:gh", "secret:gh"),
        ("mcp.servers.gh.env.GITHUB_TOKEN", "hush", HIDDEN),
        ("mcp.servers.gh.env.GITHUB_TOKEN", "secret:gh", "secret:gh"),
        (
            "mcp.servers.gh.command",
            ["npx", "srv", "--api-key", "hush", "-v"],
            ["npx", "srv", "--api-key", HIDDEN, "-v"],
        ),
        (
            "notify.command",
            ["tell", "--token=hush", "PASSWORD=hush"],
            ["tell", f"--token={HIDDEN}", f"PASSWORD={HIDDEN}"],
        ),
        ("notify.command", ["curl", "-H", "X-Api-Key: hush"], ["curl", "-H", f"X-Api-Key: {HIDDEN}"]),
        ("notify.command", ["curl", "https://me:hush@x.example/?k=hush"], ["curl", f"https://x.example/?{HIDDEN}"]),
        ("policy.hosts", ["api.example.com", "host:8080"], ["api.example.com", "host:8080"]),
        ("policy.permissions.ana", ["fs.write:docs", "secrets.use"], ["fs.write:docs", "secrets.use"]),
        ("engine.tasks", 64, 64),
    ],
)
def test_what_is_shown(key: str, value: JsonValue, seen: JsonValue) -> None:
    assert shown(key, value) == seen
