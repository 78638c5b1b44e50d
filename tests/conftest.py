"""What every test shares: the requirement map, Hypothesis without deadlines, and the long ones first."""

import os

import hypothesis
import pytest

pytest_plugins = ["pytester", "tests.requirements_map"]

# Tests start hundreds of processes: each compiles what it imports unless one may keep it for the next.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A slow machine is not a wrong answer; hangs end by the suite's own timeout.
hypothesis.settings.register_profile("everstep", deadline=None)
hypothesis.settings.load_profile("everstep")


def pytest_addoption(parser: pytest.Parser) -> None:
    """For faults that come in a moment."""
    parser.addoption("--times", type=int, default=1, help="every test so often")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Half a minute and more is begun first: else the other workers would wait for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def time_of_many(request: pytest.FixtureRequest) -> object:
    """Which one it is, of `--times`."""
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test so often as `--times` says."""
    times = metafunc.config.getoption("--times")
    if times > 1:
        metafunc.fixturenames.append("time_of_many")
        metafunc.parametrize("time_of_many", range(times), indirect=True)
