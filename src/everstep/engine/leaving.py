"""Bytes that a call leaves beside its output, and those that earlier calls of its task have left."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from everstep.domain.errors import NotFound
from everstep.domain.handles import Artifact, Left, media_type_of, named
from everstep.domain.ids import Digest
from everstep.domain.task import Intent
from everstep.domain.values import JsonObject, NotJson
from everstep.engine.kit import Kit
from everstep.ports.tool import Misconfigured, ResourceExceeded

ARTIFACTS_MAX: Final = 100


class LeavingCall(ABC):
    """The part of a `ctx` that knows of artifacts."""

    __slots__ = ("_intent", "_kit", "left_behind")

    def __init__(self, intent: Intent, kit: Kit) -> None:
        self._intent = intent
        self._kit = kit
        self.left_behind: tuple[Left, ...] = ()

    @property
    @abstractmethod
    def workdir(self) -> Path: ...

    def artifact(self, name: str, data_or_path: bytes | str | Path, media_type: str | None = None) -> Artifact:
        """Bytes, or a file of the working folder; durable with the end of the attempt."""
        if isinstance(data_or_path, str | Path):
            data_or_path = (self.workdir / data_or_path).read_bytes()
        redactor = self._kit.catalog.redactor
        if redactor:
            data_or_path = redactor.text(data_or_path.decode("latin-1")).encode("latin-1", "replace")
        try:
            name, kept = named(name), self._kit.codec.keep(data_or_path)
        except (ValueError, NotJson) as error:
            raise Misconfigured(str(error)) from error
        if len(self.left_behind) == ARTIFACTS_MAX:
            what = f"a call may leave {ARTIFACTS_MAX} artifacts behind"
            raise ResourceExceeded(what, limit="output", used=ARTIFACTS_MAX + 1, max=ARTIFACTS_MAX)
        kind = media_type or media_type_of(name)
        artifact = Artifact(name=name, digest=kept.digest, media_type=kind, bytes=kept.size_bytes)
        self.left_behind = (*self.left_behind, Left(artifact=artifact, raw=data_or_path))
        return artifact

    async def kept(self, handle: JsonObject) -> bytes:
        """Of this task, or of one that it comes from: to know a digest is no right to what it names."""
        digest, store = Digest(str(handle.get("digest"))), self._kit.store
        (state,) = await store.load_tasks((self._intent.task,))
        while state is not None and digest not in state.artifacts:
            (state,) = (None,) if state.parent is None else await store.load_tasks((state.parent.task,))
        try:
            if state is not None:
                return await store.read_payload(digest)
        except NotFound:
            pass  # collected: the same to whoever asks
        name = str(handle.get("name"))
        raise Misconfigured(f"this task has no artifact '{name}' with the digest {digest}", code="artifact_unknown")
