"""`Plan`: a plan written in Python. It becomes the same facts, and the same digest, as the file that says the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from everstep.authoring.document import check, read_document, read_file, spec_of
from everstep.authoring.keys import Speller, Template, input_schema, tool_name
from everstep.authoring.markers import Markers
from everstep.authoring.ref import Ref, expression
from everstep.authoring.tool import FunctionTool
from everstep.domain.ids import Digest
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.plan import ReadPlan, digest, to_json


class Plan:
    """What to do: inputs, steps, outputs.

    `title`, `description`, `guidance`, `defaults`, `limits`, `parallel` and `done_when` may also be set later, when
    there are references to put in them.
    """

    def __init__(
        self,
        name: str,
        *,
        inputs: Mapping[str, object] | None = None,
        title: str | Ref | None = None,
        description: str | None = None,
        guidance: str | Ref | None = None,
        defaults: Mapping[str, object] | None = None,
        limits: Mapping[str, object] | None = None,
        parallel: int | None = None,
        done_when: Ref | bool | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.guidance = guidance
        self.defaults = defaults
        self.limits = limits
        self.parallel = parallel
        self.done_when = done_when
        self.trusted = True
        self._markers = Markers()
        self._speller = Speller(self._markers)
        self._inputs: JsonObject = {word: input_schema(word, said) for word, said in (inputs or {}).items()}
        self._steps: list[JsonValue] = []
        self._finally: list[JsonValue] = []
        self._outputs: JsonObject = {}
        self._tools: dict[str, FunctionTool[..., object]] = {}
        self._named: tuple[PlanSpec, Digest] | None = None
        self._read: tuple[JsonObject, ReadPlan] | None = None

    # --- building ---

    def step(self, id: str, tool: object, arguments: Mapping[str, object] | None = None, /, **options: object) -> Ref:
        """A call of `tool`, a name or a decorated function; keywords are the other keys of a step."""
        return self._add(self._steps, (id, tool, arguments or {}), options)

    def finally_step(
        self, id: str, tool: object, arguments: Mapping[str, object] | None = None, /, **options: object
    ) -> Ref:
        """A step after the others, however they ended."""
        return self._add(self._finally, (id, tool, arguments or {}), options)

    def output(self, **values: object) -> None:
        """What the task gives back."""
        for name, value in values.items():
            if name in self._outputs:
                raise TypeError(f"the output '{name}' is given already")
            self._outputs[name] = self._speller.bound(f"output {name}", value)

    @property
    def inputs(self) -> Ref:
        """`plan.inputs.topic`."""
        return Ref("inputs", self._markers)

    @property
    def item(self) -> Ref:
        """The item of a `for_each`."""
        return Ref("item", self._markers)

    @property
    def index(self) -> Ref:
        """The place of that item."""
        return Ref("index", self._markers)

    @property
    def error(self) -> Ref:
        """What went wrong, in a fallback and in `finally`."""
        return Ref("error", self._markers)

    def expr(self, text: str) -> Ref:
        """What stands between `${` and `}` in a plan file: `plan.expr("len(hits.results) > 0")`."""
        return expression(text, self._markers)

    def _add(
        self, steps: list[JsonValue], call: tuple[str, object, Mapping[str, object]], options: Mapping[str, object]
    ) -> Ref:
        name, tool, arguments = call
        if not isinstance(arguments, Mapping):
            raise TypeError(f"step '{name}': the arguments are a map, not {arguments!r}")
        step: JsonObject = {"id": name, "tool": tool_name(tool)}
        if arguments:
            step["with"] = self._speller.bound(f"step {name}", arguments)
        step.update(self._speller.options(options))
        steps.append(step)
        if isinstance(tool, FunctionTool):
            self._tools[tool.spec.name] = tool
        return Ref(str(step.get("bind") or name), self._markers, step=name)

    # --- what it comes to ---

    @property
    def spec(self) -> PlanSpec:
        """The plan as facts; PlanError if it is not shaped like one."""
        return spec_of(self._reading(), f"the plan '{self.name}'")

    @property
    def digest(self) -> Digest:
        """Its name by content: the same for the same plan in a file."""
        return self.named()[1]

    def named(self) -> tuple[PlanSpec, Digest]:
        """The plan as facts, with its digest; worked out again only if something has changed."""
        spec = self.spec
        if self._named is None or self._named[0] is not spec:
            self._named = (spec, digest(spec))
        return self._named

    @property
    def tools(self) -> tuple[FunctionTool[..., object], ...]:
        """The decorated functions it calls."""
        return tuple(self._tools.values())

    def check(self) -> tuple[Problem, ...]:
        """Every problem that can be seen without an engine, whose other tools are not known here."""
        return check(self._reading(), self.tools, trusted=self.trusted)

    def to_dict(self) -> JsonObject:
        """The normal form."""
        return to_json(self.spec)

    def to_json(self) -> str:
        """As a JSON file."""
        from everstep.wire.fmt import format_json

        return format_json(self.spec)

    def to_yaml(self) -> str:
        """As a YAML file."""
        from everstep.wire.fmt import format_yaml

        return format_yaml(self.spec)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A plan from its file; PlanError lists what is wrong with it."""
        return cls._of(spec_of(read_file(Path(path)), f"'{path}'"))

    @classmethod
    def from_dict(cls, value: JsonObject) -> Self:
        """A plan from JSON. It came from somewhere, so it is not trusted."""
        plan = cls._of(spec_of(read_document(value, "the plan"), "the plan"))
        plan.trusted = False
        return plan

    def __repr__(self) -> str:
        return f"<Plan {self.name}, {len(self._steps)} steps>"

    @classmethod
    def _of(cls, spec: PlanSpec) -> Self:
        """A builder that holds what `spec` says, ready for more."""
        said = to_json(spec)
        plan = cls(spec.name, description=spec.description, parallel=spec.parallel)
        for key in ("title", "guidance", "done_when"):
            value = said.get(key)
            setattr(plan, key, Template(value) if isinstance(value, str) else value)
        for key in ("defaults", "limits"):
            setattr(plan, key, said.get(key))
        for key in ("inputs", "steps", "finally", "outputs"):
            if key in said:
                setattr(plan, f"_{key}", said[key])
        return plan

    def _reading(self) -> ReadPlan:
        """The plan as it stands, read as a file would be; again only if something has changed."""
        document = self._document()
        if self._read is None or self._read[0] != document:
            self._read = (document, read_document(document, f"the plan '{self.name}'"))
        return self._read[1]

    def _document(self) -> JsonObject:
        bound = {"title": self.title, "guidance": self.guidance, "done_when": self.done_when}
        written = {
            "name": self.name,
            "description": self.description,
            "defaults": self.defaults,
            "limits": self.limits,
            "parallel": self.parallel,
        }
        spell = self._speller
        document: JsonObject = {key: spell.written(key, value) for key, value in written.items() if value is not None}
        document |= {key: spell.bound(key, value) for key, value in bound.items() if value is not None}
        document |= {"inputs": self._inputs, "steps": [*self._steps], "finally": [*self._finally]}
        document["outputs"] = {**self._outputs}
        return document
