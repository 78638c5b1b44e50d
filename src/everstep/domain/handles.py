"""Values a tool holds by handle: bytes kept by their digest, text that must not be shown."""

from typing import NoReturn

from everstep.domain.ids import Digest
from everstep.domain.record import record


@record
class Artifact:
    """Stored bytes, named by their content; what travels between steps is this handle."""

    name: str
    digest: Digest
    media_type: str
    bytes: int


class Secret:
    """A value that prints as `***`; only the tool that needs it asks for the text."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself. Hand it to the one call that needs it, nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __format__(self, _spec: str) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not copied into other formats")
