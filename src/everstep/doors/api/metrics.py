"""`/metrics`: what this engine counted since its start, and how things stand now. For machines that watch."""

from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import NO_STORE, Response
from everstep.wire.prometheus import MEDIA_TYPE, write_families


async def read(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """All figures, as Prometheus reads them."""
    text = write_families(await back.desk.monitoring.families(back.version))
    return Response(status=200, headers={**NO_STORE, "content-type": MEDIA_TYPE}, body=text)
