"""A task has to wait for something that happens elsewhere, maybe tomorrow. What does it hold meanwhile?"""

from everstep import Plan, blocking

plan = Plan("order", inputs={"order": str})
paid = plan.step("paid", "wait", {"event": "paid", "key": plan.inputs.order, "timeout": "2d"})
plan.output(amount=paid.data.amount)

with blocking.Engine("orders.db") as engine:
    task = engine.start(plan, {"order": "order-17"})

with blocking.Engine("orders.db") as engine:  # it holds nothing: not even the process has to stay
    heard = engine.signal("paid", "order-17", {"amount": 12}, id="invoice-9")
    again = engine.signal("paid", "order-17", {"amount": 12}, id="invoice-9")
    result = engine.get(task.id).result()
print(heard, again, result.outputs)

assert result.outputs == {"amount": 12}
