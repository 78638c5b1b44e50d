"""How does a task ask before it acts, and can the answer change the call?"""

from everstep import Plan, blocking, tool

sent: list[str] = []


@tool("letters.send")
def send(to: str, text: str) -> str:
    """Send it; this cannot be taken back."""
    sent.append(f"{to}: {text}")
    return "sent"


plan = Plan("letter", inputs={"to": str})
plan.step(
    "send",
    send,
    {"to": plan.inputs.to, "text": "Dear all"},
    approve={"title": "Send it?", "edit": ["text"], "within": "24h", "on_timeout": "reject"},
)

with blocking.Engine("letters.db", tools=[send]) as engine:
    task = engine.start(plan, {"to": "ana"})
    assert task.result(on_pause="return").status == "paused"

    (question,) = engine.inbox()  # the same as `everstep inbox`, the dashboard, and what an MCP client is asked
    assert question.call is not None
    print(question.title, question.call.tool, question.call.input.value)
    question.edit({"text": "Dear Ana"}, by="bo", note="say her name")
    result = task.result()

assert result.status == "completed"
assert sent == ["ana: Dear Ana"], "exactly the call that was allowed, once"
