"""What every test shares: the requirement map, and Hypothesis without deadlines."""

import hypothesis

pytest_plugins = ["pytester", "tests.requirements_map"]

# A slow machine is not a wrong answer; hangs end by the suite's own timeout.
hypothesis.settings.register_profile("everstep", deadline=None)
hypothesis.settings.load_profile("everstep")
