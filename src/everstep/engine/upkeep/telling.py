"""Everything that becomes durable, told to whoever passes it on. Off the walk, and bounded: some may go by untold."""

from everstep.engine.feed import Subscription
from everstep.ports.telemetry import Telemetry


async def tell_all(subscription: Subscription, telemetry: Telemetry) -> None:
    """Until the engine stops; then what is left is passed on."""
    try:
        while not subscription.closed:
            events = await subscription.wait()
            if subscription.overflowed:
                telemetry.missed()
                subscription.caught_up()
            telemetry.told(events)
    finally:
        subscription.close()
    await telemetry.close()
