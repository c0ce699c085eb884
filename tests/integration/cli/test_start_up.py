"""What processes load before they do anything: loading is most of what a start costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import Broker

# The grammar of documents, the rules of cron, and what decides, sends or changes.
GRAMMAR = {"models.action.plan", "models.action.document", "models.tenant.document", "cron"}
DECIDING = {"scheduler", "broker.sending", "broker.app", "services.changes", "services.runs"}
HEAVY = {
    *("alembic", "amqp", "celery", "dateutil.parser", "duckdb", "email_validator", "fastapi"),
    *("httpx", "jinja2", "kombu", "pytz", "redis", "rich.console", "starlette"),
    *("sqlalchemy.dialects.postgresql", "sqlalchemy.orm", "yaml"),
}


@pytest.mark.parametrize("command", [["status"], ["action", "list"], ["run", "list"]])
def test_a_command_that_shows_loads_neither_the_grammar_nor_what_sends_or_changes(
    command: list[str], home: Path
) -> None:
    text = (
        "import sys; from cli.main import run;"
        f" code = run({command!r}); print(code, *sys.modules, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, check=True
    )

    code, *loaded = done.stderr.splitlines()[-1].split()
    assert code == "0"
    assert not {*GRAMMAR, *DECIDING, *HEAVY} & set(loaded)


WORKER_THAT_TELLS = """
import sys
from celery import signals
from cli.main import run

@signals.worker_ready.connect
def tell(**_):
    print("loaded", *sys.modules, file=sys.stderr, flush=True)

sys.exit(run(["worker", "--concurrency", "1"]))
"""


def test_a_worker_is_ready_before_anything_that_only_steps_need_is_loaded(
    home: Path, broker: Broker
) -> None:
    environment = {**os.environ, "SCHED_BROKER_URL": broker.url}
    command = [sys.executable, "-P", "-c", WORKER_THAT_TELLS]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        told = next((line for line in worker.stderr if line.startswith("loaded ")), "")
        worker.terminate()
        worker.communicate(timeout=120)

    loaded = set(told.split())
    heavy = {"alembic", "duckdb", "fastapi", "fsspec", "httpx", "jinja2", "numpy"}
    assert "celery.worker.worker" in loaded
    assert not {*heavy, "email_validator", "icalendar", "rich.console", "uvicorn"} & loaded
    assert not {"scheduler", "data.steps", "web.app", "services.actions"} & loaded
    assert not {"sqlalchemy.dialects.postgresql", "sqlalchemy.orm"} & loaded
