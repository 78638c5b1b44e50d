"""Settings of the MCP door: how long things last and wait, and which plans are published as workflows."""

from typing import Final

from everstep.settings.kinds import COUNT, DURATION, EMPTY, SIZE, TEXT, WORDS, Key, flag_key, one_of
from everstep.settings.kinds import key_of as _key

_HOUR: Final = 3_600_000
_DAY: Final = 24 * _HOUR

MCP_KEYS: Final = (
    _key("mcp.ttl", DURATION, "1h", "how long a client's handle of a task lasts after its end", within=(1, 30 * _DAY)),
    _key("mcp.max_ttl", DURATION, "24h", "the longest that a client may ask for", within=(1, 365 * _DAY)),
    _key("mcp.page", COUNT, 50, "tasks on one page of a list", within=(1, 500)),
    _key("mcp.variables", SIZE, "1MiB", "variables of a task, in all", within=(1024, 64 * 1024 * 1024)),
    _key("mcp.input_responses", COUNT, 64, "answers in one request", within=(1, 1000)),
    _key("mcp.prompt_wait", DURATION, "50s", "how long a workflow prompt waits for its task", within=(1, _HOUR)),
    _key(
        "mcp.task_after", DURATION, "2s", "a call that takes longer becomes a task, where possible", within=(1, _HOUR)
    ),
    _key("mcp.wait", DURATION, "20s", "how long `run_plan` waits, unless the call says", within=(0, 50_000)),
    _key(
        "mcp.handoff_timeout",
        DURATION,
        "24h",
        "how long a task waits for a client that took over",
        within=(1, 365 * _DAY),
    ),
    _key("mcp.calls_per_owner", COUNT, 16, "calls that one owner may have under way", within=(1, 10_000)),
    _key("mcp.streams_per_owner", COUNT, 32, "streams that one owner may listen to", within=(1, 10_000)),
    _key("mcp.sessions_per_owner", COUNT, 32, "sessions that one owner may have open", within=(1, 10_000)),
    _key("mcp.oauth.issuer", TEXT, "", "the OAuth server whose tokens are good at `/mcp`, beside our own"),
    _key("mcp.oauth.audience", TEXT, "", "what those tokens must be for: the address of `/mcp`, as clients know it"),
    _key("mcp.expose", WORDS, [], "tools that clients may call, beside those of published plans"),
    _key(
        "mcp.on_task_unavailable",
        one_of("error", "plain"),
        "error",
        "what a workflow prompt does when no task can be made",
    ),
    _key(
        "mcp.trust_elicitation",
        one_of("stdio", "always", "never"),
        "stdio",
        "over which connections an answer in a client's form is a person's",
    ),
)
_SERVER: Final = "mcp.servers.NAME"
_PUBLISHED: Final = "mcp.workflows.NAME"
MCP_FAMILIES: Final[dict[str, Key]] = {
    "mcp.workflows.*": _key(_PUBLISHED, EMPTY, None, "publish a plan as a workflow prompt"),
    "mcp.workflows.*.task_support": flag_key(
        f"{_PUBLISHED}.task_support", "make a task that can be handed over", default=False
    ),
    "mcp.workflows.*.continue_by": _key(
        f"{_PUBLISHED}.continue_by", one_of("client", "server"), "client", "who goes on after a call of the client's"
    ),
    "mcp.workflows.*.tool": flag_key(f"{_PUBLISHED}.tool", "the plan is a tool too", default=False),
    "mcp.servers.*.command": _key(
        f"{_SERVER}.command", WORDS, [], "the program that is an MCP server, and its arguments"
    ),
    "mcp.servers.*.url": _key(f"{_SERVER}.url", TEXT, "", "or where an MCP server is"),
    "mcp.servers.*.auth": _key(f"{_SERVER}.auth", TEXT, "", "the token that `url` wants: `secret:NAME`"),
    "mcp.servers.*.env.*": _key(f"{_SERVER}.env.VARIABLE", TEXT, None, "a variable of it; `secret:NAME` for a secret"),
    "mcp.servers.*.network": flag_key(f"{_SERVER}.network", "whether its program may use the network", default=True),
    "mcp.servers.*.reads": _key(f"{_SERVER}.reads", WORDS, [], "folders that its program may read, beside the project"),
    "mcp.servers.*.writes": _key(f"{_SERVER}.writes", WORDS, [], "folders that its program may change"),
    "mcp.servers.*.tools": _key(f"{_SERVER}.tools", WORDS, [], "its tools that may be called, as `mcp.NAME.TOOL`"),
    "mcp.servers.*.resources": _key(f"{_SERVER}.resources", WORDS, [], "schemes that `resource.read` reads there"),
    "mcp.servers.*.effects.*": _key(
        f"{_SERVER}.effects.TOOL",
        one_of("pure", "idempotent", "once"),
        None,
        "what a repeated call may do; unset: once, and every call is asked about",
    ),
    "mcp.servers.*.trust_hints": flag_key(
        f"{_SERVER}.trust_hints", "whether the server's own word on effects counts", default=False
    ),
}
"""Plans that are published as workflow prompts, and servers of others; a star stands for a name."""
