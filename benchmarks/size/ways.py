"""Run one way through the house, and print which of its files and functions were entered.

`python -m benchmarks.size.ways NAME`: each in a process of its own, on SQLite, beside a broker.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import httpx
import sqlalchemy as sa

from benchmarks.size.counting import ROOT, is_product
from broker.app import configure
from models.roles import Role
from models.store.schema import migrate
from models.tables import operations
from runtime.config import Settings, load_settings
from runtime.database import make_engine
from tests.factories import author, make_document, set_back, yearly
from tests.servers import Broker, free_port, temporary_folder

MINUTE = timedelta(minutes=1)
Entered = set[tuple[str, str]]


@contextmanager
def traced() -> Iterator[Entered]:
    """Yield the files and functions of the product that are entered meanwhile, in all threads."""
    entered: Entered = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def product_of(entered: Entered) -> Entered:
    """Return those of the product."""
    inside = {one for one in entered if one[0].startswith(f"{ROOT}/")}
    return {one for one in inside if ".venv" not in one[0] and is_product(Path(one[0]))}


@contextmanager
def installed() -> Iterator[Settings]:
    """Yield the settings of a migrated installation on SQLite, with a broker."""
    folder = temporary_folder()
    broker = Broker(folder, free_port())
    broker.start()
    os.environ["SCHED_HOME"], os.environ["SCHED_BROKER_URL"] = str(folder / "home"), broker.url
    try:
        settings = load_settings(None)
        settings.home.mkdir()
        engine = make_engine(settings)
        migrate(engine)
        engine.dispose()
        configure(settings)
        yield settings
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def add(settings: Settings) -> Entered:
    """`minutebook action add FILE`."""
    from cli.main import main

    file = settings.home / "action.json"
    file.write_text(json.dumps(make_document(name="weekly")))
    with traced() as entered:
        _run(main, ["action", "add", str(file)])
    return entered


def tick(settings: Settings) -> Entered:
    """`daemon --once` with three actions due."""
    from processes.daemon import main

    engine = make_engine(settings)
    three_due(engine)
    with traced() as entered:
        _run(main, ["--once"])
    return entered


def operation(settings: Settings) -> Entered:
    """A worker's operation, from its claim to its end."""
    from processes.daemon import main
    from tasks.execute import run_attempt
    from tasks.registry import registry_of

    engine = make_engine(settings)
    three_due(engine)
    _run(main, ["--once"])
    with engine.begin() as connection:
        id: UUID = connection.execute(sa.select(operations.c.id).limit(1)).scalar_one()
    registry = registry_of(settings.step_modules)
    with traced() as entered:
        state = run_attempt(engine, settings, registry, (id, 1), "here:1")
    assert state == "success", state
    return entered


def page(settings: Settings) -> Entered:
    """The page of an action, after another page."""
    from tests.web_server import serving
    from views import tokens
    from views.installation import Installation
    from web.app import make_app

    engine = make_engine(settings)
    uid = three_due(engine)[0]
    opened = Installation(settings.home)
    token = tokens.create(opened, Role.ADMIN, None).token
    with (
        traced() as entered,
        serving(make_app(opened), settings.web) as address,
        httpx.Client(base_url=address, timeout=60) as browser,
    ):
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        assert browser.get("/").status_code == 200
        entered.clear()
        answer = browser.get(f"/apps/default/actions/{uid}")
        found = set(entered)
    assert answer.status_code == 200, answer.text
    return found


def three_due(engine: sa.Engine) -> list[UUID]:
    """Store three actions that are due, once; return their uids."""
    from models.sql import read_clock
    from scheduler.changes.change import create_all

    with engine.begin() as connection:
        now = read_clock(connection)
    when = yearly(now.replace(second=0, microsecond=0))
    documents = [make_document(name=f"due {number}", when=when) for number in range(3)]
    made = create_all(engine, documents, author())
    for one in made:
        set_back(engine, one.uid, now - 2 * MINUTE)
    return [one.uid for one in made]


def _run(main: Callable[[list[str]], Any], arguments: list[str]) -> None:
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    assert not code, code


WAYS: dict[str, Callable[[Settings], Entered]] = {
    "action add": add,
    "tick with 3 due": tick,
    "a worker's operation": operation,
    "the page of an action": page,
}

if __name__ == "__main__":
    with installed() as _settings:
        _entered = product_of(WAYS[sys.argv[1]](_settings))
    print(json.dumps([len({file for file, _ in _entered}), len(_entered)]))
