"""The remote face: an engine that is served elsewhere, over HTTP and WebSocket.

    from everstep.client import Client

    async with Client("http://127.0.0.1:7717", token="es_…") as client:
        task = await client.create(plan_name="research-brief", inputs={"topic": "solar"})
        async for event in client.events(task["id"], until_end=True):
            print(event["seq"], event["type"])

Replies are the objects of the API as they are sent; refusals are `EverstepError`s with the API's `code`. Streams go on
by themselves over cuts and restarts, each event once and in order. `BlockingClient` is the same without `await`.

    rules.py    when to come back, by which way, and what has been seen: no I/O
    ways.py     WebSocket, server-sent events, long poll: one try of each
    remote.py   the client        blocking.py   its synchronous face
"""

from everstep.client.blocking import BlockingClient
from everstep.client.remote import Client

__all__ = ["BlockingClient", "Client"]
