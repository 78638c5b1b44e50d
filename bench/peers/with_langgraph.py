"""LangGraph with a checkpoint before every next node: `python -m bench.peers.with_langgraph CELL URL`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from bench.peers.cells import main, measure, request, told, work
from bench.workload import STEPS, Cell

POOL = 16


class Last(TypedDict):
    task: str
    last: dict[str, object]


def node(number: int) -> Callable[[Last], Awaitable[dict[str, object]]]:
    async def call(state: Last) -> dict[str, object]:
        return {"last": await work(state["task"], request(number))}

    return call


def graph(saver: Any) -> Any:  # noqa: ANN401 -- theirs, and not there when this is checked
    """Ten nodes in line; the state keeps the last result only, which is kindest to it."""
    made = StateGraph(Last)
    for number in range(STEPS):
        made.add_node(f"s{number}", node(number))
        made.add_edge(START if number == 0 else f"s{number - 1}", f"s{number}")
    made.add_edge(f"s{STEPS - 1}", END)
    return made.compile(checkpointer=saver)


@asynccontextmanager
async def saver_on(url: str) -> AsyncIterator[Any]:
    if url.startswith("sqlite:///"):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(url.removeprefix("sqlite:///")) as saver:
            yield saver
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    how = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=1, max_size=POOL, open=False, kwargs=how) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver


async def perform(cell: Cell, url: str) -> None:
    async with saver_on(url) as saver:
        made = graph(saver)

        async def carry(number: int) -> None:
            thread = f"{cell.name}-{number}"
            config = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
            await made.ainvoke({"task": thread}, config, durability="sync")

        told(await measure(cell, carry))


if __name__ == "__main__":
    main(perform)
