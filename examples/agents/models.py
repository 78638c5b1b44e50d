"""Models that say what a script says, so that the examples need no network and no key."""

import json
from typing import Any


def researcher(asked: dict[str, Any]) -> str:
    """Two searches, then a brief of what was found."""
    known = asked["messages"][-1]["content"].partition("Known:\n")[2].strip()
    if not known:
        return json.dumps({"action": "search", "query": "battery"})
    if "night" not in known:
        return json.dumps({"action": "search", "query": "night"})
    return json.dumps({"action": "write", "brief": f"# Solar storage\n\n{known}"})


def programmer(asked: dict[str, Any]) -> str:
    """The obvious change first, then the one that the tests ask for."""
    text = asked["messages"][-1]["content"]
    if "return text\n" in text:
        body, why = 'def slug(text):\n    return text.lower().replace(" ", "-")\n', "Words are joined by dashes."
    else:
        body = 'import re\n\n\ndef slug(text):\n    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")\n'
        why = "Other characters count as gaps."
    return json.dumps({"path": "slug.py", "text": body, "why": why})
