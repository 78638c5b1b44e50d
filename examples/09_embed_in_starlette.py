"""I have a web application already. How do tasks, their API and their dashboard become a part of it?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from everstep import Engine, Plan, tool


@tool.pure("letters.greet")
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello {name}"


plan = Plan("greeting", inputs={"name": str})
plan.output(said=plan.step("greet", greet, {"name": plan.inputs.name}))
engine = Engine("app.db", tools=[greet])


@asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with engine:
        yield


async def hello(request: Request) -> JSONResponse:
    """A route of your own: the key makes a repeated request the same task."""
    task = await engine.start(plan, {"name": request.path_params["name"]}, key=f"hello-{request.path_params['name']}")
    return JSONResponse({"task": task.id, "outputs": (await task.result()).outputs})


app = Starlette(routes=[Route("/hello/{name}", hello), Mount("/everstep", engine.asgi())], lifespan=lifespan)


async def main() -> None:
    """What a client of it sees; in earnest: `uvicorn 09_embed_in_starlette:app`."""
    async with lifespan(app), AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        first, again = [(await client.get("/hello/ana")).json() for _ in range(2)]
        refused = await client.get("/everstep/v1/tasks")
        token = (await asyncio.to_thread(Path("app.token").read_text)).strip()  # made beside the store, for its owner
        listed = await client.get("/everstep/v1/tasks", headers={"Authorization": f"Bearer {token}"})
        print(first, listed.json()["items"][0]["status"])

        assert first == again, "asked twice, done once"
        assert first["outputs"] == {"said": "Hello ana"}
        assert [item["id"] for item in listed.json()["items"]] == [first["task"]]
        assert refused.status_code == 401, "nothing is open by default"


asyncio.run(main())
