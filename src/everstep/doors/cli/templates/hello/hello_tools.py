"""Tools of this project: ordinary functions. Their type hints are their schema, their docstring is their description."""

from typing import TypedDict

from everstep import tool


class Greeting(TypedDict):
    """What `hello.greet` returns."""

    text: str


# `pure`: calling it again changes nothing, so after a crash it is simply called again.
# Without it a tool counts as `once`: after a crash inside the call, you are asked whether it happened.
@tool.pure("hello.greet")
def greet(name: str) -> Greeting:
    """Greet somebody."""
    return {"text": f"Hello, {name}!"}
