"""The wheels, built once, and an environment of the server."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import installation, own_broker
from tests.packages.environments import Environment, Wheels, build_wheels, make_environment

__all__ = ["installation", "own_broker"]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Both distributions, built once."""
    return build_wheels(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def server(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the server, as an installation in /opt has it."""
    made = make_environment(tmp_path_factory.mktemp("opt") / "minutehand")
    made.install(str(wheels.client), str(wheels.server))
    made.see_libraries()
    return made


@pytest.fixture(scope="session")
def application(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment of an application: its libraries, and the client."""
    made = make_environment(tmp_path_factory.mktemp("application") / "env")
    made.install(str(wheels.client))
    made.see_libraries()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of an application with modules that are named as ours are."""
    for name in ("tasks", "models", "cli", "mail", "cron", "scheduler", "runtime", "broker", "web"):
        (tmp_path / f"{name}.py").write_text(f"OWNER = 'the user of {name}'\n")
    return tmp_path
