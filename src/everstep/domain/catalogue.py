"""Every code a step's failure may carry: what it is called, how it counts, and what a person can do about it.

One row per code (tools, section 3). A code that a tool's author makes up is treated as its category says.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from everstep.domain.failure import TREATMENT, Category, EffectState
from everstep.domain.record import record

_NONE, _UNKNOWN, _MADE = EffectState.NONE, EffectState.UNKNOWN, EffectState.MADE


@record
class ErrorCode:
    """One row."""

    title: str
    what_to_do: str
    category: Category
    effect_state: EffectState = _NONE


def _row(category: Category, effect_state: EffectState, title: str, what_to_do: str | None = None) -> ErrorCode:
    what_to_do = what_to_do or TREATMENT[category].then
    return ErrorCode(title=title, what_to_do=what_to_do, category=category, effect_state=effect_state)


# --- HTTP answers: a status that is not listed counts as its hundred ---

_BUSY: Final = _row(Category.TRANSIENT, _NONE, "the server cannot answer now")
_BROKE: Final = _row(Category.TRANSIENT, _UNKNOWN, "the server failed while it worked on the request")
_WRONG: Final = _row(Category.CONFIGURATION, _NONE, "the server refuses the request", "correct the arguments")
_CLOSED: Final = _row(Category.PERMISSION, _NONE, "the server denies access", "renew the credential, then retry")
_CLASH: Final = _row(
    Category.LOGIC, _NONE, "the request contradicts what the server holds", "look at its present state, then decide"
)
_LARGE: Final = _row(Category.RESOURCE, _NONE, "the server refuses so much data", "send less")

_STATUSES: Final[tuple[tuple[Iterable[int], ErrorCode], ...]] = (
    (range(400, 500), _WRONG),
    (range(500, 600), _BROKE),
    ((501, 505), _WRONG),
    ((408, 425, 429, 503), _BUSY),
    ((401, 403, 407, 451), _CLOSED),
    ((409, 412, 423, 428), _CLASH),
    ((413, 507), _LARGE),
)

# --- all codes ---

ERROR_CODES: Final[Mapping[str, ErrorCode]] = {
    "net_dns": _row(Category.TRANSIENT, _NONE, "the name could not be looked up just now"),
    "net_refused": _row(Category.TRANSIENT, _NONE, "the connection was refused", "see whether the other side is up"),
    "net_connect": _row(Category.TRANSIENT, _NONE, "no connection could be made", "see whether the other side is up"),
    "net_reset": _row(Category.TRANSIENT, _UNKNOWN, "the connection broke"),
    "net_read": _row(Category.TRANSIENT, _UNKNOWN, "no complete answer came"),
    "net_host": _row(Category.CONFIGURATION, _NONE, "there is no such host", "correct the host name"),
    "net_url": _row(Category.CONFIGURATION, _NONE, "the address is not valid", "correct the address"),
    "net_tls": _row(
        Category.CONFIGURATION, _NONE, "the certificate is not trusted", "correct the host name or its certificate"
    ),
    **{f"http_{status}": row for statuses, row in _STATUSES for status in statuses},
    "reply_too_large": _row(Category.RESOURCE, _UNKNOWN, "the answer is too large", "ask for less"),
    "wait_timeout": _row(
        Category.LOGIC, _NONE, "no signal came in time", "send it and retry, or wait longer: `timeout`"
    ),
    "tool_missing": _row(
        Category.CONFIGURATION, _NONE, "the tool is not installed here", "install it, or name it in `tools`"
    ),
    "unknown_resource": _row(
        Category.CONFIGURATION, _NONE, "nothing serves this resource", "correct its address, or serve it"
    ),
    "http_redirects": _row(
        Category.CONFIGURATION, _NONE, "the address leads on and on", "name the address it leads to in the end"
    ),
    "http_encoding": _row(Category.CONFIGURATION, _MADE, "the answer is packed in a way nobody asked for"),
    "http_not_text": _row(Category.CONFIGURATION, _MADE, "the answer is no text", "keep it with http.download"),
    "http_unexpected": _row(
        Category.CONFIGURATION, _MADE, "the answer has a status that was not expected", "name it in `expect`"
    ),
    "policy_denied": _row(Category.PERMISSION, _NONE, "policy does not allow it", "use what policy allows"),
    "os_denied": _row(Category.PERMISSION, _NONE, "the system denies access", "grant access to it, then retry"),
    "os_missing": _row(
        Category.CONFIGURATION, _NONE, "it does not exist", "correct the path, or install what is missing"
    ),
    "os_enospc": _row(Category.RESOURCE, _NONE, "the disk is full", "free disk space, then retry"),
    "os_edquot": _row(Category.RESOURCE, _NONE, "the disk quota is used up", "free disk space, then retry"),
    "os_emfile": _row(Category.RESOURCE, _NONE, "too many files are open here", "close some, or raise the limit"),
    "os_enfile": _row(Category.RESOURCE, _NONE, "too many files are open in the system", "close some, then retry"),
    "os_conflict": _row(
        Category.LOGIC, _NONE, "something is in the way", "choose another name, or remove what is there"
    ),
    "os_eio": _row(Category.TRANSIENT, _UNKNOWN, "the device failed", "look at the disk; then retry"),
    "os_eagain": _row(Category.TRANSIENT, _UNKNOWN, "the system was busy"),
    "os_etimedout": _row(Category.TRANSIENT, _UNKNOWN, "the system gave up waiting"),
    "rate_limited": _row(Category.RESOURCE, _NONE, "our own rate limit is used up", "try later, or raise the limit"),
    "quota_exhausted": _row(Category.RESOURCE, _NONE, "the quota is used up", "wait until it is renewed, or raise it"),
    "limit_memory": _row(Category.RESOURCE, _UNKNOWN, "the memory ran out", "ask for less, or raise the limit"),
    "limit_calls": _row(Category.RESOURCE, _NONE, "the task's calls are used up", "raise the limit, or cancel"),
    "limit_cost": _row(Category.RESOURCE, _NONE, "what it may cost is used up", "raise the limit, or cancel"),
    "limit_wall_time": _row(Category.RESOURCE, _NONE, "the task's time is used up", "raise the limit, or cancel"),
    "limit_output": _row(Category.RESOURCE, _MADE, "the output is too large", "ask for less, or raise the limit"),
    "deadline": _row(Category.RESOURCE, _NONE, "the task's deadline has passed", "start it with a later deadline"),
    "timeout": _row(
        Category.TRANSIENT, _UNKNOWN, "no answer came in time", "give the step a longer `timeout`, or retry it"
    ),
    "invalid_result": _row(
        Category.INTERNAL, _MADE, "the result is not what the tool promises", "correct the tool, then retry the step"
    ),
    "tool_bug": _row(Category.INTERNAL, _MADE, "bug in tool", "correct the tool at the named line, or skip this step"),
    "bad_argument": _row(Category.CONFIGURATION, _NONE, "an argument is not usable", "correct the arguments"),
    "limit_cpu": _row(Category.RESOURCE, _UNKNOWN, "the CPU time ran out", "ask for less, or raise the limit"),
    "limit_processes": _row(Category.RESOURCE, _UNKNOWN, "too many processes", "ask for less, or raise the limit"),
    **{
        f"smtp_{code}": _row(Category.TRANSIENT, _NONE, "the mail server cannot take it now")
        for code in (421, 450, 451, 452, 454, 455)
    },
    "mail_auth": _row(Category.PERMISSION, _NONE, "the mail server refuses the account", "correct `mail.auth`"),
    "mail_policy": _row(Category.PERMISSION, _NONE, "the mail server's policy refuses it", "ask its operator"),
    "mail_address": _row(Category.CONFIGURATION, _NONE, "the mail server refuses an address", "correct the address"),
    "mail_header": _row(Category.CONFIGURATION, _NONE, "a header cannot be sent", "correct subject and addresses"),
    "mail_content": _row(Category.PERMISSION, _NONE, "the message holds what may not go out", "take it out"),
    "mail_too_large": _row(Category.RESOURCE, _NONE, "the mail server takes nothing so large", "send less"),
    "mail_rejected": _row(Category.LOGIC, _NONE, "the mail server refuses the message", "look at what it says"),
    "mail_unconfirmed": _row(
        Category.LOGIC,
        EffectState.MADE,
        "the mail server took the message, and it has not been seen to arrive",
        "look for it before you send it again, or give the step a longer `timeout`",
    ),
    "mail_lost": _row(
        Category.TRANSIENT, _UNKNOWN, "the connection broke after the message was sent", "look whether it arrived"
    ),
    "llm_invalid": _row(Category.TRANSIENT, _NONE, "the model does not answer in the form that was asked for"),
    "llm_too_long": _row(
        Category.RESOURCE, _NONE, "more than the model takes or may say", "ask with less, or raise `max_tokens`"
    ),
    "llm_refused": _row(Category.LOGIC, _NONE, "the model refuses to answer", "ask otherwise, or another model"),
    "search_not_json": _row(
        Category.CONFIGURATION, _NONE, "the search engine does not answer in JSON", "allow `json` in its search.formats"
    ),
    "browser_crashed": _row(Category.TRANSIENT, _UNKNOWN, "the browser ended during the call"),
    "browser_element": _row(
        Category.LOGIC, _NONE, "the page does not show what was looked for", "look at the page, correct the selector"
    ),
    "browser_missing": _row(
        Category.CONFIGURATION, _NONE, "there is no browser", "install Chromium and `everstep[browser]`"
    ),
    "mcp_broken": _row(
        Category.TRANSIENT, _UNKNOWN, "the MCP server went away during the call", "look whether it happened, then retry"
    ),
    "mcp_frame": _row(Category.TRANSIENT, _UNKNOWN, "the MCP server sent more than one message may hold"),
    "mcp_down": _row(Category.TRANSIENT, _NONE, "the MCP server ended, and is started again soon"),
    "mcp_timeout": _row(Category.TRANSIENT, _UNKNOWN, "the MCP server did not answer in time"),
    "mcp_arguments": _row(
        Category.CONFIGURATION, _NONE, "the MCP server knows no such request, or not these arguments", "correct them"
    ),
    "mcp_error": _row(Category.LOGIC, _UNKNOWN, "the MCP server answered with an error", "look at what it says"),
    "mcp_no_tool": _row(
        Category.CONFIGURATION,
        _NONE,
        "the MCP server has no such tool",
        "correct `mcp.servers`, or use another version",
    ),
    "mcp_tool_error": _row(Category.LOGIC, _MADE, "the tool of the MCP server failed", "look at what it says"),
    "mcp_too_large": _row(Category.RESOURCE, _MADE, "the tool of the MCP server said too much", "ask for less"),
    "tool_changed": _row(
        Category.PERMISSION, _NONE, "the tool is not what was agreed to", "look at it: everstep mcp accept NAME"
    ),
    "mcp_version": _row(
        Category.CONFIGURATION, _NONE, "the MCP server speaks a revision that we do not", "use another version of it"
    ),
    "shell_exit": _row(
        Category.LOGIC, _MADE, "the program ended with another exit code", "look at what it said; then decide"
    ),
    "shell_signal": _row(Category.LOGIC, _MADE, "the program was ended by a signal", "look at what it said"),
    "shell_tempfail": _row(Category.TRANSIENT, _NONE, "the program asks to be called again later"),
    "shell_denied": _row(Category.PERMISSION, _NONE, "the program may not be run", "make the file executable"),
    "shell_missing": _row(
        Category.CONFIGURATION, _NONE, "there is no such program", "install it, or correct `shell.commands`"
    ),
    "shell_argument": _row(
        Category.PERMISSION, _NONE, "an argument does not match what the command takes", "correct the argument"
    ),
    "containment_unavailable": _row(
        Category.PERMISSION, _NONE, "the walls that the call needs cannot be built here", "use a platform that has them"
    ),
    "process_died": _row(
        Category.TRANSIENT, _UNKNOWN, "the process of the call died", "look at what it said; then retry"
    ),
    "process_lost": _row(
        Category.TRANSIENT, _UNKNOWN, "the process could not be ended", "look at it by hand: it may still run"
    ),
    "http_token": _row(
        Category.CONFIGURATION, _NONE, "the token endpoint gave no token", "look at `token_url` of the target"
    ),
    "secret_missing": _row(
        Category.CONFIGURATION, _NONE, "there is no such secret", "register the secret, or grant it to this owner"
    ),
    "bad_path": _row(
        Category.CONFIGURATION, _NONE, "the path is not usable", "give a path inside the workspace, such as notes/a.txt"
    ),
    "file_conflict": _row(
        Category.LOGIC, _NONE, "the file is not what was expected", "look at the file, then decide what should happen"
    ),
    "artifact_unknown": _row(
        Category.CONFIGURATION,
        _NONE,
        "this task has no such artifact",
        "bind the argument to the output of a step that left one, such as ${shot.artifact}",
    ),
    "undo_expired": _row(
        Category.LOGIC, _NONE, "what was before is no longer kept", "restore it from a copy of your own"
    ),
    "limit_disk": _row(Category.RESOURCE, _NONE, "there is not enough disk space", "free disk space, then retry"),
    "file_not_text": _row(Category.CONFIGURATION, _NONE, "the file is not UTF-8 text", "name a text file"),
    # What a tool's author said without a code of their own.
    "tool_transient": _row(Category.TRANSIENT, _NONE, "the tool could not do it now"),
    "tool_uncertain": _row(
        Category.TRANSIENT, _UNKNOWN, "the tool does not know whether it happened", "look whether it happened"
    ),
    "tool_misconfigured": _row(Category.CONFIGURATION, _NONE, "the tool cannot work with this"),
    "tool_denied": _row(Category.PERMISSION, _NONE, "the tool was denied access"),
    "tool_exceeded": _row(Category.RESOURCE, _NONE, "the tool reached a limit"),
    "tool_impossible": _row(Category.LOGIC, _NONE, "it cannot be done as things are"),
    "tool_error": _row(Category.INTERNAL, _NONE, "the tool failed"),
    # What the engine itself says of a step.
    "not_recordable": _row(
        Category.INTERNAL, _NONE, "it is too long to be written down", "let the step give less at a time, then retry"
    ),
    "worker_lost": _row(
        Category.TRANSIENT,
        _UNKNOWN,
        "the worker died inside the call",
        "the effect rule decides: call again, look, or ask",
    ),
    "permission_denied": _row(
        Category.PERMISSION, _NONE, "whoever started the task may not use this tool", "grant it in `policy.permissions`"
    ),
    "tool_unhealthy": _row(
        Category.TRANSIENT, _NONE, "it was not well when it was last looked at", "nothing: it is used when it is well"
    ),
    "breaker_open": _row(
        Category.TRANSIENT,
        _NONE,
        "calls failed too often and are held back for a while",
        "wait, or, if the cause is gone: everstep breakers reset ID",
    ),
    "paused": _row(
        Category.TRANSIENT, _UNKNOWN, "the call was cut off for a pause", "nothing: it is made again on resume"
    ),
    "halted": _row(
        Category.TRANSIENT,
        _UNKNOWN,
        "the call was cut off because everything was halted",
        "the effect rule decides: call again, look, or ask",
    ),
    "not_ours": _row(
        Category.TRANSIENT,
        _UNKNOWN,
        "the call was given up while it was still at work, and somebody else makes it by now",
        "nothing: whoever holds the task goes on with it",
    ),
    "not_called": _row(Category.TRANSIENT, _NONE, "the call was never made", "nothing: it is made now"),
    "answered_fail": _row(Category.LOGIC, _NONE, "someone answered: fail", "retry the task, or fork it"),
    "child_failed": _row(Category.LOGIC, _MADE, "the task that the step made did not complete", "look at that task"),
    "plan_invalid": _row(Category.CONFIGURATION, _NONE, "the plan that the step names has problems"),
    "plan_not_found": _row(Category.CONFIGURATION, _NONE, "there is no plan of that name"),
    "plan_too_deep": _row(Category.CONFIGURATION, _NONE, "tasks make tasks too deep"),
    "approval_rejected": _row(
        Category.LOGIC, _NONE, "the call was not approved", "change what it would do, then retry the task"
    ),
    "needs_input": _row(Category.LOGIC, _NONE, "the tool asks first", "answer the question"),
    "invalid_arguments": _row(
        Category.CONFIGURATION, _NONE, "the arguments do not fit the tool", "correct the arguments"
    ),
    "items_failed": _row(Category.LOGIC, _MADE, "items of a list failed", "look at the failed items"),
    "cancelled": _row(
        Category.LOGIC, _UNKNOWN, "the task was cancelled inside the call", "look whether it had an effect"
    ),
    "recovery_exhausted": _row(
        Category.INTERNAL,
        _UNKNOWN,
        "the worker died again and again",
        "look at the step it was in; it probably kills its worker",
    ),
}

SAID: Final[Mapping[Category, str]] = {
    Category.TRANSIENT: "tool_transient",
    Category.CONFIGURATION: "tool_misconfigured",
    Category.PERMISSION: "tool_denied",
    Category.RESOURCE: "tool_exceeded",
    Category.LOGIC: "tool_impossible",
    Category.INTERNAL: "tool_error",
}
"""The code of a failure whose author gave only its category."""
