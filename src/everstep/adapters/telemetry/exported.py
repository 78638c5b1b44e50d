"""Where the environment says that figures and traces go, if it does."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from everstep.adapters.extras import extra_part
from everstep.domain.version import __version__
from everstep.ports.telemetry import Telemetry

OTEL_ENDPOINTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT" for kind in ("", "TRACES_", "METRICS_"))


def exporter(environment: Mapping[str, str], families: Callable[[], Any]) -> Telemetry | None:
    """Raises SettingsError without the extra."""
    wanted = any(name in environment for name in OTEL_ENDPOINTS)
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    why, instead = "OTEL_EXPORTER_OTLP_ENDPOINT asks for OpenTelemetry", ", or set OTEL_SDK_DISABLED=true"
    otel = extra_part("everstep.adapters.telemetry.otel", "otel", why, instead)
    return cast("Telemetry", otel.from_environment(environment, families, __version__))
