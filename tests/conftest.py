"""What every test shares: the requirement map, Hypothesis without deadlines, and the long ones first."""

import os

import hypothesis
import pytest

pytest_plugins = ["pytester", "tests.requirements_map"]

# Tests start hundreds of processes: each compiles what it imports unless one may keep it for the next.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

QUICK = (
    "tests/test_tidy.py",
    *(f"tests/unit/{room}/" for room in ("authoring", "domain", "engine", "ports", "settings", "wire")),
)

# A slow machine is not a wrong answer; hangs end by the suite's own timeout.
hypothesis.settings.register_profile("everstep", deadline=None)
hypothesis.settings.load_profile("everstep")


def pytest_addoption(parser: pytest.Parser) -> None:
    """For faults that come in a moment."""
    parser.addoption("--times", type=int, default=1, help="every test so often")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long is begun first: else the other workers would wait for it at the end."""
    if part := config.getoption("--part"):
        others = [item for item in items if is_quick(item) is not (part == "first")]
        items[:] = [item for item in items if is_quick(item) is (part == "first")]
        config.hook.pytest_deselected(items=others)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def is_quick(item: pytest.Item) -> bool:
    """Whether it belongs to the first part of the suite, for every commit: rules and engine, no foreign parts."""
    place = item.path.relative_to(item.config.rootpath).as_posix()
    return place.startswith(QUICK) and item.get_closest_marker("long") is None


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
