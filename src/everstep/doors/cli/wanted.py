"""What `run` was asked for: the plan, its inputs, and the options, as one request."""

from typing import Any, Self, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.domain.ids import KEY
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.given import read_inputs
from everstep.doors.cli.targets import Target, find_target
from everstep.doors.cli.words import listed
from everstep.settings import Settings

Json: TypeAlias = dict[str, Any]


class Wanted:
    """What is to be started, and how."""

    def __init__(self, target: Target, inputs: Json, options: Json) -> None:
        self.target = target
        self.inputs = inputs
        self.options = options

    @classmethod
    def of(cls, said: str, options: Json, settings: Settings) -> Self:
        """Find the plan and read what was typed; raises what a person can correct, before anything is opened."""
        target = find_target(said, settings)
        wanted = cls(target, read_inputs(options["given"], options["inputs"], target.spec), options)
        wanted.check()
        return wanted

    def check(self) -> None:
        """What can be wrong with the options."""
        key, until, spec = self.options["key"], self.options["until"], self.target.spec
        for one in self.options["labels"]:
            label_of(one)
        if key is not None and not KEY.fullmatch(key):
            raise EverstepError(
                f"'{key}' is no key",
                code="bad_request",
                what_to_do="1 to 128 of A-Z a-z 0-9 . _ -, not beginning with t_",
            )
        known = [step.id for step in spec.steps] if spec is not None else []
        if until is not None and spec is not None and spec.durable is None and until not in known:
            raise EverstepError(
                did_you_mean(f"the plan has no step '{until}'", suggest(until, known)),
                code="bad_request",
                what_to_do=f"one of: {listed(known, 20)}",
            )

    def body(self) -> Json:
        """How a start names it."""
        options = self.options
        labels = dict(label_of(one) for one in options["labels"])
        wanted = {
            **self.target.body(),
            "inputs": self.inputs,
            "title": options["title"],
            "labels": labels or None,
            "priority": options["priority"],
            "pause_after": options["until"],
            "attach": not options["new"] and options["key"] is None,
        }
        return {name: value for name, value in wanted.items() if value is not None}


def label_of(given: str) -> tuple[str, str]:
    """`K=V`."""
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise EverstepError(f"'{given}' is no label", code="bad_request", what_to_do="write --label NAME=VALUE")
    return name, value
