"""Parts that not everybody installs: imported by whoever asks for them, and refused with the way to get them."""

from importlib import import_module
from typing import Any

from everstep.domain.errors import SettingsError


def extra_part(module: str, extra: str, why: str, instead: str = "") -> Any:
    """A module whose packages come with an extra; raises SettingsError without them, which says `why` it was wanted."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(
            f"{why}, and what that needs is not installed: {error}",
            what_to_do=f"pip install 'everstep[{extra}]'{instead}",
        ) from error
