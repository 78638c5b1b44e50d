"""`/v1` without a framework: a request record in, a response record out, or frames. Every door is a shell around it.

    routes.py    the table: every route as data
    request.py   what comes in and goes out
    context.py   what a handler works with
    tasks steps listing events stream logs pauses plans tools admin   the handlers

A handler translates and calls the desk; no rule of the product lives here.
"""

from everstep.doors.api.front import Api
from everstep.doors.api.request import Request, Response, split_target

__all__ = ["Api", "Request", "Response", "split_target"]
