"""The way out: what may be reached (`guard`), and the one client that reaches it (`client`)."""

from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Asked
from everstep.adapters.net.message import BODY_BYTES, REDIRECTS_MAX, Headers, Reply, Request
from everstep.adapters.net.origin import asked_by
from everstep.adapters.net.url import parse_url

__all__ = ["BODY_BYTES", "REDIRECTS_MAX", "Asked", "Client", "Headers", "Reply", "Request", "asked_by", "parse_url"]
