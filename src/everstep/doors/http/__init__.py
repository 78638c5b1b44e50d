"""The network door: `/v1` over HTTP, and whatever else is mounted beside it. Imported only when an engine is served.

    gate.py    who may come in: Host, Origin, token, route, scope; before everything, for http and websocket alike
    names.py   which Host and Origin are ours        rate.py   how often, how many at once
    app.py     what is behind the gate: the api, event streams, other doors, pages
    streams.py events as a WebSocket or server-sent  sockets.py  a WebSocket that can be closed on who does not read
    answer.py  how a reply is sent                   body.py   how a body is read
    server.py  the listening socket, TLS, and how it stops

Behind the gate `scope["everstep.principal"]` says who asks (`domain/access.Principal`; None for a stranger at an open
route) and `scope["everstep.match"]` which route of the table it is (None beside `/v1`). Nobody behind it checks again.
"""

from everstep.doors.http.app import make_app
from everstep.doors.http.gate import Gate, Mount
from everstep.doors.http.server import Listener, listen
from everstep.doors.http.streams import Streams

__all__ = ["Gate", "Listener", "Mount", "Streams", "listen", "make_app"]
