"""Duties that no task's walk has: what must happen although nobody holds the task."""
