"""The plan of the worked example: fetch, transform, store."""

from typing import Any

STEPS: list[dict[str, Any]] = [
    {
        "id": "fetch",
        "bind": "raw_data",
        "tool": "fetch_data",
        "with": {"source": "${inputs.source}"},
        "retry": 0,
        "retryable": True,
    },
    {
        "id": "transform",
        "bind": "transformed",
        "tool": "transform_data",
        "with": {"data": "${raw_data}", "format": "rows"},
    },
    {"id": "store", "tool": "store_data", "with": {"payload": "${transformed.rows}"}},
]
