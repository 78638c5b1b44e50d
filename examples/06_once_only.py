"""The process dies while it pays. Was it paid? Who finds out, and is it ever paid twice?"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from everstep import Plan, blocking, tool

BANK = Path("bank.log")


@tool("bank.pay")  # an effect that must not be repeated: `once`, unless a tool says otherwise
def pay(amount: int) -> str:
    """Pay; the first payment is made, and then the process is gone before anybody heard of it."""
    with BANK.open("a", encoding="utf-8") as bank:
        bank.write(f"paid {amount}\n")
    if "--die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


plan = Plan("invoice")
plan.output(receipt=plan.step("pay", pay, {"amount": 12}))

if "--die" in sys.argv:
    with blocking.Engine("invoice.db", tools=[pay]) as engine:
        engine.run(plan)
else:
    died = subprocess.run([sys.executable, __file__, "--die"], check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL

    with blocking.Engine("invoice.db", tools=[pay]) as engine:
        paused = engine.run(plan, on_pause="return")
        (question,) = engine.inbox()
        print(paused.status, question.type, question.why)
        assert question.type == "uncertainOutcome", "nobody knows, so somebody is asked"
        question.happened("paid", note="it is on the bank statement")
        result = engine.run(plan)

    assert result.outputs == {"receipt": "paid"}
    assert BANK.read_text(encoding="utf-8") == "paid 12\n", "paid once"
