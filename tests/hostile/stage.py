"""One installation with two small apps, each of whose editors attacks the other."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from cli.main import run
from models.store.schema import migrate
from runtime.config import load_settings
from runtime.database import make_engine
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.acceptance.installation import Installation
from tests.factories import make_document, row_of
from tests.integration.cli.conftest import Result
from tests.integration.cli.test_apps import FAR
from tests.servers import Broker, free_port, temporary_folder

APPS = ("shop", "bakery")
# Not within the digits of an id.
SALARY = "7777.75"
ENVIRONMENT = {
    # What the installation allows; each app has its own folder alone.
    "SCHED_SECRETS_ENV": "*",
    "SCHED_CELERY_TASKS": "*",
    "SCHED_HOOK_SECRET": "s3cret",
    "BAKERY_URL": "http://127.0.0.1:1/a.csv",
    "SHOP_URL": "http://127.0.0.1:1/a.csv",
}


@dataclass
class Stage:
    """The installation, its command line, and what a worker does with an operation."""

    installation: Installation
    folder: Path

    @property
    def data(self) -> Path:
        """The data root, with a folder for each app."""
        return self.installation.settings.effective_data_root

    def call(self, *arguments: str) -> Result:
        """Call `minutebook` as an editor does."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        return Result(code, out.getvalue(), err.getvalue())

    def apply(self, document: object) -> Result:
        """Save the document of a small app, given as JSON or as an object."""
        return self.call("app", "apply", self._written(document))

    def add(self, app: str, **changes: Any) -> Result:
        """Save an action of a small app, which no tick of the attacks runs."""
        return self.call(
            "--app", app, "action", "add", self._written(make_document(**{"when": FAR, **changes}))
        )

    def refresh(self, app: str, source: Mapping[str, Any]) -> dict[str, Any]:
        """Save that source, with a format where it needs one, and read it as a worker does."""
        form = {"format": "csv"} if "url" in source else {}
        saved = self.apply({"name": app, "domains": {"a": {"source": source, **form}}})
        assert saved.code == 0, saved.err
        return self.ran(app, "refresh the data", {"refresh": True})

    def ran(self, app: str, name: str, operations: Mapping[str, Any]) -> dict[str, Any]:
        """Run an action, added if it is missing, as a worker does; return the operation's row."""
        self.add(app, name=name, operations=operations)
        began = self.call("--app", app, "--json", "action", "run", name)
        assert began.code == 0, began.err
        id = UUID(began.json["id"])
        engine = self.installation.engine
        run_attempt(engine, self.installation.settings, Registry(), (id, 1), "attacked")
        return row_of(engine, id)

    def _written(self, document: object) -> str:
        file = self.folder / "document.json"
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(file)


def refused(done: Result, *parts: str) -> str:
    """Check that a command refused the input; return the first line of its error."""
    assert done.code == 2, f"exit code {done.code}: {done.out}{done.err}"
    assert all(part in done.err for part in parts), done.err
    assert "Traceback" not in done.err
    return done.err.splitlines()[0]


def failed(row: Mapping[str, Any], *parts: str) -> str:
    """Check that an operation failed and shows nothing of another app; return its error."""
    assert row["state"] == "failed", row
    assert all(part in row["error"] for part in parts), row["error"]
    assert SALARY not in str(row), "it shows the salary"
    return str(row["error"])


@contextmanager
def opened() -> Iterator[Stage]:
    """Yield a new installation with a broker and both small apps."""
    folder = temporary_folder()
    server = Broker(folder / "broker", free_port())
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("broker", "home", "work"):
            (folder / name).mkdir()
        server.start()
        stack.callback(server.stop)
        environment = {
            "SCHED_HOME": str(folder / "home"),
            "SCHED_BROKER_URL": server.url,
            **ENVIRONMENT,
        }
        stack.enter_context(patch.dict(os.environ, environment))
        settings = load_settings(folder / "home")
        engine = make_engine(settings)
        migrate(engine)
        engine.dispose()
        installation = Installation("sqlite", settings, server)
        stack.callback(installation.close)
        stage = Stage(installation, folder / "work")
        for app in APPS:
            (stage.data / app).mkdir(parents=True)
            (stage.data / app / "salaries.csv").write_text(f"salary\n{SALARY}\n")
            done = stage.apply({"name": app})
            assert done.code == 0, done.err
        yield stage
