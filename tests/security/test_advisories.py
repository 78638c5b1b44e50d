"""One named test for every advisory and report that others had to write: their lesson, tried on us.

`test_advisory[CVE-…]`; what each lesson was is summed up beside it, as the security notes do.
"""

import pytest

from everstep.domain.values import JsonValue
from tests.security import attacks as a

CONSTRUCTOR: dict[str, JsonValue] = {
    "lc": 2,
    "type": "constructor",
    "id": ["os", "system"],
    "kwargs": {"command": "id"},
}
PICKLE = "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg=="

ADVISORIES: dict[str, a.Attack] = {
    # deserialisation: JSON only, and no fallback when something does not fit
    "CVE-2025-64439": a.json_is_refused('"\\ud800"', '{"a":"\\udfff"}'),
    "CVE-2026-27794": a.stored_values_stay_data(PICKLE, {"__pickle__": PICKLE}, "!!python/object/apply:os.system [id]"),
    "CVE-2026-28277": a.stored_values_stay_data(dict(CONSTRUCTOR), [dict(CONSTRUCTOR)]),
    # SQL: keys are input too
    "CVE-2025-8709": a.keys_are_input("metadata'%20OR%201=1--=x", "$.a')%20UNION%20SELECT%201--=x"),
    "CVE-2025-67644": a.keys_are_input("label%5B'%5D=x", "sort=created_at;drop%20table%20tasks", "cursor='"),
    # open doors: one gate, before routing, exact matches
    "CVE-2026-7723": a.nobody_comes_in("/v1/tasks/{task}/events", "/v1/events"),
    "CVE-2026-3514": a.nobody_comes_in("/v1/tasks/health", "/v1/tasks/{task}/health", "/v1/tasks?x=/health"),
    "headroom-3281": a.nobody_comes_in("/mcp", "/mcp/", "/mcp/health", method="POST"),
    # authorisation: ids are parsed, never trimmed; no cookies
    "CVE-2026-45426": a.another_owners_is_unknown("loca", "local2", "xlocal", "Local"),
    "CVE-2026-22922": a.another_owners_is_unknown("eve"),
    "CVE-2026-28779": a.cookies_mean_nothing(),
    # expressions: no sandbox in the process, because nothing is evaluated
    "CVE-2025-68613": a.texts_arrive_as_they_are("{{ $json.constructor.constructor('return process')() }}", "={{7*7}}"),
    "CVE-2026-1470": a.expressions_are_refused("${constructor.constructor('x')()}", "${(()=>1)()}"),
    "CVE-2025-68668": a.expressions_are_refused("${__import__('os').system('id')}", "${inputs.__class__.__mro__}"),
    "CVE-2026-49444": a.texts_arrive_as_they_are("${secrets.key}", "${inputs.v}", "$${x}", "#{7*7}", "<%= 7*7 %>"),
    "CVE-2024-56326": a.texts_arrive_as_they_are("{{ ''|attr('format') }}", "{0.__class__}", "%(x)s", "{x!r}"),
    # one parser per body; no path from a body; what is shown is text
    "CVE-2026-21858": a.bodies_have_one_reader("multipart/form-data; boundary=x", "text/plain", "application/jsonx"),
    "CVE-2026-21877": a.paths_are_refused("../x", "/etc/passwd", "a/../../x"),
    "n8n-16978": a.texts_arrive_as_they_are("<script>alert(1)</script>", "<svg onload=alert(1)>"),
    "n8n-18602": a.texts_arrive_as_they_are("<iframe srcdoc='<script>1</script>'>", "javascript:alert(1)"),
    # DNS rebinding: our own check of Host and Origin, also before the SDK
    "CVE-2025-66416": a.hosts_are_checked("evil.test", "localhost.evil.test:7717", origins=("http://evil.test",)),
    "CVE-2025-66414": a.hosts_are_checked(
        "127.0.0.1.evil.test", "evil.test:7717", origins=("null", "http://localhost:1")
    ),
    # local proxies: a token on loopback too, and no command from a request
    "CVE-2025-49596": a.nobody_comes_in("/v1/tools", "/mcp?command=id&transportType=stdio"),
    "langflow-12290": a.no_command_from_a_request(
        {"mcp_servers": {"x": {"command": ["id"]}}},
        {"plan": {"name": "p", "mcp": {"x": {"command": "id"}}, "steps": []}},
    ),
    # a URL never reaches a shell
    "CVE-2025-6514": a.argv_is_refused(["git", "http://x/$(id)"], ["open", "http://x/"], ["cat", "a.txt;id"]),
    # paths: by descriptor, not by prefix
    "CVE-2025-53109": a.paths_are_refused("out/file", "out", link="out"),
    "CVE-2025-53110": a.paths_are_refused("../ws-secret/file", "./../ws-secret/file"),
    # allowlists of first words fail: a grammar for every argument
    "GHSA-7f33-9mwg-h5hj": a.argv_is_refused(["git", "log\nid"], ["git", "status", "&&", "id"]),
    "GHSA-5rc2-j254-g375": a.argv_is_refused(["git", "-c", "core.pager=id", "log"], ["git", "log", "--output=x"]),
    "cmd-line-mcp-5": a.argv_is_refused(["cat", "a.txt", "|", "sh"], ["cat", "`id`"], ["cat", "$(id).txt"]),
    # a session is no credential
    "GHSA-f6c5-f2ph-7x7p": a.nobody_comes_in("/mcp", method="POST", sent={"mcp-session-id": "known"}),
    # approvals: the exact call, once, at the edge where it is made
    "agenta-4854": a.an_approval_is_for_one_call("arguments"),
    "extra-139": a.an_approval_is_for_one_call("version"),
    "inspect_ai-4944": a.an_approval_is_for_one_call("again"),
    # SSRF: the address that is connected to is the one that was checked
    "open-swe-1186": a.urls_are_refused(
        "http://127.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://127.1/"
    ),
    "hermes-8034": a.urls_are_refused("http://[::ffff:10.0.0.1]/", addresses=("8.8.8.8", "127.0.0.1")),
    # secrets: by value, before every writer
    "dify-37047": a.secrets_are_removed("Authorization: Bearer {secret}", '{{"header": "{secret}"}}'),
    "paperclip-8047": a.secrets_are_removed("error: 401 for {secret}", "{hex}"),
    "temporal-ts-2317": a.secrets_are_removed("trace: key={secret}&x=1", "line\n{secret}\n"),
    # sandboxes: the real boundary, for all tools
    "claude-code-15789": a.every_tool_obeys_the_policy(),
    "claude-code-33249": a.urls_are_refused("http://10.0.0.1:8080/", "http://192.168.0.1/", "http://[fd00::1]/"),
    "claude-code-32226": a.paths_are_refused("/proc/self/environ", "a/../../.ssh/id"),
    # YAML: no aliases, no tags
    "pyyaml-235": a.yaml_is_refused("a: &a [x]\nb: *a", "a: &a [*a]"),
    "js-yaml-742": a.yaml_is_refused(
        "a: &a {x: 1}\nb: {<<: *a}", "a: !!python/object:os.system {}", "__proto__: {}\n__proto__: {}"
    ),
}


@pytest.mark.parametrize("advisory", ADVISORIES)
async def test_advisory(advisory: str) -> None:
    await ADVISORIES[advisory]()
