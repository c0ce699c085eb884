"""The wheels, built once for all processes of a run, and an environment of the server."""

import fcntl
import os

import pytest

from tests.acceptance.conftest import installation, own_broker
from tests.packages.environments import Environment, Wheels, build_wheels, make_environment

__all__ = ["installation", "own_broker"]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Both distributions, built by the first process of a run that needs them."""
    base = tmp_path_factory.getbasetemp()
    # Each process of pytest-xdist has a folder of its own in that of the run.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    built = shared / "dist"
    with (shared / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.is_dir():
            build_wheels(tmp_path_factory.mktemp("building")).folder.rename(built)
    return Wheels(built)


@pytest.fixture(scope="session")
def server(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the server, as an installation in /opt has it."""
    made = make_environment(tmp_path_factory.mktemp("opt") / "minutebook")
    made.install(str(wheels.client), str(wheels.server))
    made.see_libraries()
    return made


@pytest.fixture(scope="session")
def application(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("application") / "env")
    made.install(str(wheels.client))
    made.see_libraries()
    return made
