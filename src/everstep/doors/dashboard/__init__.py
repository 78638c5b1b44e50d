"""The dashboard's own files: built from `dashboard/` by `scripts/build_dashboard.py`, served beside `/v1`."""

from everstep.doors.dashboard.pages import STATIC, Pages, is_built

__all__ = ["STATIC", "Pages", "is_built"]
