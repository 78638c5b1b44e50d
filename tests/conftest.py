"""What every test shares: the requirement map, and Hypothesis without deadlines."""

import os

import hypothesis

pytest_plugins = ["pytester", "tests.requirements_map"]

# Tests start hundreds of processes: each compiles what it imports unless one may keep it for the next.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A slow machine is not a wrong answer; hangs end by the suite's own timeout.
hypothesis.settings.register_profile("everstep", deadline=None)
hypothesis.settings.load_profile("everstep")
