"""LangGraph: `python -m bench.kill.with_langgraph FOLDER URL`. A thread with a checkpoint is invoked with nothing."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from operator import add
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph

from bench.kill.world import World

world = World(sys.argv[1])


class State(TypedDict):
    value: int
    done: Annotated[list[str], add]


def node(name: str) -> Callable[[State], Awaitable[dict[str, Any]]]:
    async def call(state: State) -> dict[str, Any]:
        return {"value": await world.call(name, state["value"]), "done": [name]}

    return call


def graph(saver: Any) -> Any:  # noqa: ANN401 -- theirs, and not there when this is checked
    made = StateGraph(State)
    last = START
    for name, _ in world.steps:
        made.add_node(name, node(name))
        made.add_edge(last, name)
        last = name
    made.add_edge(last, END)
    return made.compile(checkpointer=saver)


async def main(url: str) -> None:
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        made = graph(saver)
        config = {"configurable": {"thread_id": "trial"}, "recursion_limit": 100}
        begun = (await made.aget_state(config)).values
        given = None if begun else {"value": world.start, "done": []}
        told = await made.ainvoke(given, config, durability="sync")
        world.tell(told["value"], told["done"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
