"""What is said about one pause, line by line: a typed line goes in, the body of an answer comes out. Pure.

It offers what the Pause itself lists (`answers`, each with its schema), so it knows no rules of its own; it only finds
letters for them, and asks for the values that an answer needs.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from everstep.doors.cli.words import safe, safe_lines, short

Json: TypeAlias = dict[str, Any]

LEAVE: Final = "leave"
"""Somebody else, or later."""

_LETTERS: Final = {
    "approve": ("a", "[a]pprove"),
    "edit": ("e", "[e]dit"),
    "reject": ("r", "[r]eject"),
    "happened": ("h", "it [h]appened"),
    "not_happened": ("n", "it did [n]ot"),
    "retry": ("r", "[r]etry"),
    "retry_with": ("e", "[e]dit"),
    "supply_arguments": ("g", "[g]ive it"),
    "supply_output": ("o", "[o]utput"),
    "run_producer": ("p", "call the [p]roducer"),
    "answer": ("a", "[a]nswer"),
    "raise_limit": ("r", "[r]aise it"),
    "resume": ("r", "[r]esume"),
    "skip": ("s", "[s]kip"),
    "fail": ("f", "[f]ail"),
    "cancel": ("c", "[c]ancel"),
}
_OUTPUT: Final = ("o", "give its [o]utput")
"""`answer` to a question for approval: the step's result, without a call."""
_TAKES_ARGUMENTS: Final = frozenset({"retry_with", "supply_arguments", "edit"})
_TAKES_VALUE: Final = frozenset({"happened", "supply_output", "answer", "reject", "raise_limit"})
_FIELD: Final = {"answer": "value", "raise_limit": "max"}
"""Under which word a value is sent, if it is not the step's output."""
FAMILIES: Final = frozenset({
    "ask", "browser", "file", "http", "json", "llm", "mail", "mcp", "plan", "resource", "search", "shell", "text",
    "wait", "webhook",
})  # fmt: skip
"""Families of built-in tools; any other name is a function of the user."""


class BadValue(ValueError):
    """What was typed cannot be that value."""


@dataclass(slots=True)
class Dialogue:
    """One pause, and how far the talk about it has come."""

    pause: Json
    message: str = ""
    """What to say before the next line is read: why the last one was not taken."""
    viewing: bool = False
    _answer: str = ""
    _missing: list[str] = field(default_factory=list)
    _body: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begin()

    @property
    def id(self) -> str:
        """The pause."""
        return str(self.pause["id"])

    @property
    def title(self) -> str:
        """The question."""
        reason = self.pause["reason"]
        return safe(reason["question"] if reason["type"] == "inputRequired" else self.pause["title"])

    @property
    def aside(self) -> str:
        """Whom or what it is about."""
        reason = self.pause["reason"]
        step = self.pause.get("step")
        tool = reason.get("suggestedTool")
        return ", ".join(filter(None, (f"step {step}" if step else "", tool or "")))

    @property
    def _asks_approval(self) -> bool:
        return bool(self.pause["reason"]["type"] == "approvalRequired")

    @property
    def hint(self) -> str:
        """What to know before answering: why the last line was not taken, a cure, or the reason."""
        why = self.pause.get("why") or ""
        if self._asks_approval and not self.message:
            return "; ".join([safe(why), *call_lines(self.pause)])
        return self.message or cure(self.pause) or (safe(why) if why != self.pause["title"] else "")

    @property
    def prompt(self) -> str:
        """What may be typed now."""
        if not self._answer:
            words = [self._letter(one)[1] for one in self._offered()]
            return f"{' '.join(words)} [v]iew [w] leave it waiting >"
        if self._answer == "reject":
            return "why not? (Enter alone: back) >"
        if self._answer == "answer" and not self._missing and not self._asks_approval:
            return f"{schema_words(self._value_schema())} (:skip :cancel :wait) >"
        if self._missing:
            return f"{self._missing[0]} = (Enter alone: back) >"
        if self._answer in _TAKES_ARGUMENTS:
            names = "|".join((self.pause.get("call") or {}).get("editable") or ["NAME"])
            return f"{names}=VALUE (Enter alone: send) >"
        if self._answer == "raise_limit":
            return "the new limit, a number >"
        return "its output, as JSON (Enter alone: null) >"

    def hear(self, line: str) -> Json | str | None:
        """A typed line: the body of an answer, LEAVE, or None while more is to be said."""
        self.message, self.viewing = "", False
        text = line.strip()
        try:
            if not self._answer:
                return self._choose(text)
            if self._answer in _TAKES_ARGUMENTS:
                return self._argument(text)
            if self._answer == "reject":
                return self._rejected(text)
            if self._answer == "answer" and not self._asks_approval:
                return self._answered(line)
            field = _FIELD.get(self._answer, "output")
            return {**self._begun(), field: value_of(text) if text else None}
        except BadValue as error:
            self.message = str(error)
            return None

    def refused(self, why: str) -> None:
        """The engine did not take the answer: say why, and begin again."""
        self._begin()
        self.message = why

    def details(self) -> list[str]:
        """Everything known about the pause, for `view`."""
        reason = self.pause["reason"]
        lines = safe_lines(self.pause.get("why") or "")
        lines += safe_lines(self.pause["guidance"]) if self.pause.get("guidance") else []
        lines += call_lines(self.pause)
        lines += [
            f"{name}: {safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}"
            for name, value in reason.items()
            if name != "type" and value is not None
        ]
        return [line for line in lines if line]

    def _begin(self) -> None:
        self._answer = "answer" if self.pause["reason"]["type"] == "inputRequired" else ""
        self._missing, self._body = [], {}

    def _offered(self) -> list[str]:
        return [one["answer"] for one in self.pause["answers"] if one["answer"] in _LETTERS]

    def _choose(self, text: str) -> Json | str | None:
        word = text.lower()
        if word in ("w", "wait", "leave"):
            return LEAVE
        if word in ("v", "view"):
            self.viewing = True
            return None
        chosen = next((one for one in self._offered() if word in (self._letter(one)[0], one)), None)
        if chosen is None:
            self.message = f"'{safe(text)}' is none of them" if text else ""
            return None
        if chosen in _TAKES_ARGUMENTS:
            reason = self.pause["reason"]
            self._missing = list(reason.get("missingFields") or filter(None, (reason.get("missingParam"),)))
        elif chosen not in _TAKES_VALUE:
            return self._begun(chosen)
        self._answer = chosen
        return None

    def _letter(self, answer: str) -> tuple[str, str]:
        return _OUTPUT if answer == "answer" and self._asks_approval else _LETTERS[answer]

    def _begun(self, answer: str = "") -> Json:
        """The request of an answer as the pause itself gives it: an approval names the call it is about."""
        word = answer or self._answer
        return next(dict(one["request"]["body"]) for one in self.pause["answers"] if one["answer"] == word)

    def _rejected(self, text: str) -> Json | None:
        if not text:
            self._begin()
            return None
        return {**self._begun(), "note": text}

    def _answered(self, line: str) -> Json | str | None:
        command = line.strip().lower()
        if command in (":w", ":wait"):
            return LEAVE
        if command in (":v", ":view"):
            self.viewing = True
            return None
        for word in ("skip", "cancel"):
            if command in (f":{word}", f":{word[0]}") and word in self._offered():
                return {"answer": word}
        schema = self._value_schema()
        if not line.strip() and schema.get("type") != "string":
            return None
        return {"answer": "answer", "value": line if schema.get("type") == "string" else value_of(line.strip())}

    def _argument(self, text: str) -> Json | None:
        if self._missing:
            if not text:
                self._begin()
                return None
            self._body[self._missing.pop(0).removeprefix("/").partition("/")[0]] = value_of(text)
            return None if self._missing else {**self._begun(), "arguments": self._body}
        if not text:
            if self._body:
                return {**self._begun(), "arguments": self._body}
            self._begin()
            return None
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadValue("write NAME=VALUE")
        self._body[name.strip()] = value_of(value.strip())
        self.message = f"{', '.join(self._body)} will change"
        return None

    def _value_schema(self) -> Json:
        schema = self.pause["reason"].get("schema")
        return schema if isinstance(schema, dict) else {"type": "string"}


def value_of(text: str) -> Any:  # noqa: ANN401 -- any JSON
    """JSON if it is JSON, else the text itself; half-written JSON is neither."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        if text[:1] in ("{", "[", '"'):
            raise BadValue("this begins like JSON, but does not end like it") from None
        return text


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def schema_words(schema: Json) -> str:
    """What a value has to be, in a few words."""
    if isinstance(options := schema.get("enum"), list):
        return " | ".join(safe(str(one)) for one in options)
    if isinstance(fields := schema.get("properties"), dict):
        required = schema.get("required") or ()
        told = ", ".join(f'"{name}": {_kind(of)}{"" if name in required else "?"}' for name, of in fields.items())
        return f"{{{safe(told)}}}"
    return {"string": "your answer", "boolean": "true or false"}.get(
        str(schema.get("type")), f"a JSON {schema.get('type') or 'value'}"
    )


def _kind(schema: object) -> str:
    if not isinstance(schema, dict):
        return "any"
    options = schema.get("enum")
    return "|".join(map(str, options)) if isinstance(options, list) else str(schema.get("type") or "any")


def cure(pause: Json) -> str | None:
    """The line that would remove the question of an uncertain outcome, for this very step."""
    reason = pause["reason"]
    if reason["type"] != "uncertainOutcome":
        return None
    step = str(reason["blockedStep"]).partition("[")[0]
    tool = reason.get("suggestedTool") or ""
    line = f"if calling it twice is harmless, write 'on_uncertain: retry' under step '{step}'"
    if tool and tool.partition(".")[0] not in FAMILIES:
        line += f", or @tool.idempotent above '{tool}'"
    return line


def call_lines(pause: Json) -> list[str]:
    """What would be called, exactly, and what the plan wants shown beside it."""
    call = pause.get("call")
    if call is None:
        return []
    given = call["input"].get("value", call["input"].get("preview"))
    named = given.items() if isinstance(given, dict) else [("arguments", given)]
    lines = [f"{name} = {safe(json.dumps(value, ensure_ascii=False))}" for name, value in named]
    return lines + [f"shown: {safe(json.dumps(one, ensure_ascii=False))}" for one in pause.get("show") or ()]


_COMMANDS: Final = {
    "approve": "everstep approve {pause}",
    "edit": "everstep approve {pause} --set NAME=VALUE",
    "reject": "everstep reject {pause} --note TEXT",
}


def answer_commands(pause: Json) -> list[str]:
    """Commands to paste, one per allowed answer."""
    commands = []
    for one in pause["answers"]:
        if one["answer"] in _COMMANDS:
            commands.append(_COMMANDS[one["answer"]].format(pause=short(pause["id"])))
            continue
        needs = ((one.get("schema") or {}).get("properties") or {}).keys()
        extra = " --set NAME=VALUE" if "arguments" in needs else " --value JSON" if needs else ""
        commands.append(f"everstep answer {short(pause['id'])} {one['answer']}{extra}")
    return commands
