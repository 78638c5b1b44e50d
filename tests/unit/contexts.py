"""A `ctx` for calling tools without an engine: the one that users get."""

from everstep.testing.context import NOW, Context, Lines, call_of, context

__all__ = ["NOW", "Context", "Lines", "call_of", "context"]
