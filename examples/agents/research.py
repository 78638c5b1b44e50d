"""A research agent: a model decides what to look for, the agent looks, and asks before it writes the brief."""

from typing import Any

from everstep import durable

MOVE = {
    "type": "object",
    "properties": {
        "action": {"enum": ["search", "write"]},
        "query": {"type": "string"},
        "brief": {"type": "string"},
    },
    "required": ["action"],
    "additionalProperties": False,
}
RULES = "You research in a folder of notes. Say what to search for next, or write the brief when you know enough."


@durable("research", version="1")
async def research(ctx: Any, topic: str) -> dict[str, object]:  # noqa: ANN401 -- everstep gives it
    """Search as often as the model wants, then write what it found, if somebody agrees."""
    ctx.stages(["llm.json", "search.local", "approve", "file.write"])
    known: list[str] = []
    while True:
        asked = {"system": RULES, "prompt": f"Topic: {topic}\nKnown:\n" + "\n".join(known), "schema": MOVE}
        move = (await ctx.call("llm.json", asked))["value"]
        if move["action"] == "write":
            break
        found = await ctx.call("search.local", {"query": move["query"], "glob": "notes/*.md", "limit": 3})
        pages = await ctx.gather(*[ctx.call("file.read", {"path": one["path"]}) for one in found["results"]], limit=2)
        known += [f"- {page['text'].strip()}" for page in pages]
    approved = await ctx.approve("Write brief.md?", show={"text": move["brief"]}, edit=["text"])
    written = await ctx.call("file.write", {"path": "brief.md", "text": approved["text"] + "\n"})
    return {"file": written["path"], "notes": len(known)}
