"""Where the environment says that figures and traces go, if it does."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, cast

from everstep.domain.errors import SettingsError
from everstep.domain.version import __version__
from everstep.ports.telemetry import Telemetry

OTEL_ENDPOINTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT" for kind in ("", "TRACES_", "METRICS_"))


def exporter(environment: Mapping[str, str], families: Callable[[], Any]) -> Telemetry | None:
    """Raises SettingsError without the extra."""
    wanted = any(name in environment for name in OTEL_ENDPOINTS)
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        otel = import_module("everstep.adapters.telemetry.otel")
    except ImportError as error:
        raise SettingsError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT asks for OpenTelemetry, which is not installed: {error}",
            what_to_do="pip install 'everstep[otel]', or set OTEL_SDK_DISABLED=true",
        ) from error
    return cast("Telemetry", otel.from_environment(environment, families, __version__))
