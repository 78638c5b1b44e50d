"""Part of building a wheel: it holds the dashboard, so that nobody who installs it needs Node."""

import os
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface):  # type: ignore[misc]
    """Builds it from its sources, and refuses a wheel without it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, where the system has none that is new enough: a wheel is built in an environment without pip."""
        return [] if _building()["own_node"]() else [_building()["NODE_WHEEL"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before files are collected. A checkout installed for development builds it when it is needed."""
        del build_data
        if version != "editable" and os.environ.get("EVERSTEP_NO_DASHBOARD") != "1":
            _building()["build"]()


def _building() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).with_name("build_dashboard.py")))
