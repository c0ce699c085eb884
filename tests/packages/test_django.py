"""Orders of a Django project own schedules: on three releases, on SQLite and PostgreSQL."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.roles import Role
from runtime.config import Settings
from runtime.sections.celery import CelerySettings
from tests import django_project
from tests.integration.web.conftest import Serve, Web, serve
from tests.packages.environments import ROOT, Environment, Wheels, make_environment, python_of

__all__ = ["serve"]

FILES = Path(__file__).parent / "django_orders"
DATABASES = ("sqlite", "postgresql")
# Django and its Python; without one it is that of the tests.
OTHERS = (("django~=4.2.0", "3.9"), ("django~=6.0.0", "3.12"))


@dataclass(frozen=True)
class Project:
    """The Django project of a shop, and the server of its schedules."""

    server: Web
    folder: Path
    python: str
    settings: Mapping[str, str]

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, *command],
            cwd=self.folder,
            env=dict(self.settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, code: int = 0) -> str:
        started = self.start(*command)
        out, err = started.communicate()
        assert started.returncode == code, out + err
        return out + err


@pytest.fixture
def minutebook(home_of: Callable[[str], Settings], serve: Serve) -> Web:
    """A server that may send the shop's tasks."""
    allowed = CelerySettings(tasks=("shop.*",))
    return serve(home_of("sqlite").model_copy(update={"celery": allowed}))


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """An empty database as Django's settings have it."""
    if request.param == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(tmp_path / "shop.db"),
            "TEST": {"NAME": str(tmp_path / "test.db")},
            "OPTIONS": {"timeout": 60},
        }
    made: dict[str, Any] = request.getfixturevalue("postgresql").django_database("django_orders")
    return made


@pytest.fixture
def project(
    minutebook: Web, application: Environment, database: dict[str, Any], tmp_path: Path
) -> Project:
    return made(minutebook, application, database, tmp_path)


def made(server: Web, environment: Environment, database: Any, folder: Path) -> Project:
    files = folder / "shop"
    shutil.copytree(FILES, files, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "orders_settings",
        "SHOP_DATABASE": json.dumps(database),
        "SHOP_MINUTEBOOK": server.url,
        "SHOP_TOKEN": server.token(Role.EDITOR, "default"),
    }
    return Project(server, files, str(environment.bin / "python"), settings)


def passes_its_tests(project: Project) -> None:
    said = project.run("-W", "error", "manage.py", "test", "--noinput", "-v", "0")

    assert "OK" in said
    assert "No changes" in project.run("manage.py", "makemigrations", "minutebook", "--check")


def its_admin_works(project: Project) -> None:
    names = ("MINUTEBOOK_URL", "MINUTEBOOK_TOKEN")
    server = dict(zip(names, (project.server.url, project.settings["SHOP_TOKEN"]), strict=True))
    given = {"name": "remind", "task": "shop.remind", "active": "on", "kind": "cron_rule"}
    given |= {"rule": "0 7 * * *", "timezone": "Europe/Paris", "args": "[1]", "kwargs": ""}
    with django_project.project(project.folder, project.python, **server) as url:
        admin, add = django_project.Browser(url, "admin"), f"{django_project.ACTIONS}add/"
        checked = admin.post(add, **given, check="1")
        stored = admin.post(add, **given)
        rows = admin.get("/admin/minutebook/schedule/")

    assert "It would be created, revision 1." in django_project.text_of(checked)
    assert "Stored remind." in django_project.text_of(stored)
    assert "Run now" in stored.text
    assert rows.status_code == 200


def stored(project: Project) -> Any:
    """Return the schedule of the only order, as the server has it."""
    return project.server.client(Role.VIEWER).get("/api/actions/shop.order:1").json()


def stored_rule(project: Project) -> Any:
    return stored(project)["document"]["when"]["cron_rule"]


def test_orders_own_schedules(project: Project) -> None:
    passes_its_tests(project)


@pytest.mark.matrix
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("release", OTHERS, ids=lambda release: release[0])
def test_orders_own_schedules_on_other_releases(
    minutebook: Web, wheels: Wheels, tmp_path: Path, release: tuple[str, str], database: Any
) -> None:
    django, python = release
    environment = make_environment(tmp_path / "env", python_of(python))
    environment.install(str(wheels.client))
    environment.install(django, "httpx", "psycopg[binary]", is_offline=False)

    shop = made(minutebook, environment, database, tmp_path)
    passes_its_tests(shop)
    its_admin_works(shop)


def test_the_newest_change_of_two_processes_is_what_the_server_has(project: Project) -> None:
    project.run("change.py", "make")
    both = [project.start("change.py", "many", hour) for hour in ("7", "8")]
    ended = [one.communicate() for one in both]

    version, state, rule = project.run("change.py", "show").strip().split(" ", 2)
    assert [one.returncode for one in both] == [0, 0], ended
    assert (version, state) == ("40", "sent")
    assert stored_rule(project) == rule


def test_a_process_that_dies_before_it_sends_leaves_it_to_the_next(project: Project) -> None:
    project.run("change.py", "make")
    project.run("change.py", "die", code=9)
    assert project.run("change.py", "show") == "1 pending 59 23 * * *\n"

    assert project.run("manage.py", "minutebook_sync") == "1 sent, 0 refused, 0 pending\n"

    assert stored_rule(project) == "59 23 * * *"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_examples_of_the_page_work(project: Project) -> None:
    page = ROOT / "docs" / "how-to" / "move-from-celery-beat" / "django.md"

    said = project.run("page.py", str(page)).splitlines()

    assert said[:3] == ["11 {'pending': 0}", "shop.order:1 sent ", "shop.order:1:check sent "]
    assert stored(project)["standing"] == "paused"
