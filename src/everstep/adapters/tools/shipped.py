"""The families that come with everstep, made as the settings say."""

from collections.abc import Iterator

from everstep.adapters.isolation.bounds import Walls, walls_of
from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.browsing import browser_walls
from everstep.adapters.tools.file import FileTools
from everstep.adapters.tools.file_roots import roots_of
from everstep.adapters.tools.inward import inward
from everstep.adapters.tools.mailing import outward
from everstep.adapters.tools.shell import ShellTools, commands_of
from everstep.ports.adapter import ToolAdapter
from everstep.settings import Settings
from everstep.wire.values import Codec

__all__ = ["Walls", "browser_walls", "shipped", "walls_of"]


def shipped(settings: Settings, codec: Codec, threads: Threads, secrets: KnownSecrets) -> Iterator[ToolAdapter]:
    """All of them; what is wrong in the settings is a SettingsError with its place."""
    yield from inward(codec, walls_of(settings))
    kept = (settings.said["file.undo_bytes"].value, settings.said["file.undo_window"].value)
    assert isinstance(kept[0], int)
    assert isinstance(kept[1], int)
    yield FileTools(threads, undo_bytes=kept[0], undo_window_s=kept[1] / 1000, roots=roots_of(settings))
    yield ShellTools(commands_of(settings), walls_of(settings))
    yield from outward(settings, threads, secrets)
