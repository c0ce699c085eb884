"""Actions that run in this process, and a server that hears of their ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from runtime.config import Settings
from runtime.sections import HookSettings
from tasks import lease
from tasks.notices.channel import send
from tasks.outgoing.mail.message import Content
from tests.integration.tasks.crew import Crew, Tell, Work
from tests.receiver import Receiver, receiver


@pytest.fixture
def work(own_steps: None, engine: sa.Engine, settings: Settings) -> Iterator[Work]:
    yield Work(engine, settings)
    lease.stopping.value = False


@pytest.fixture
def crew(own_steps: None, engine: sa.Engine, settings: Settings) -> Crew:
    return Crew(engine, settings)


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    def told(url: str, title: str = "a title", text: str = "a text", **hook: Any) -> None:
        notify = {"ops": SecretStr(url.replace("http://", "json://"))}
        its = HookSettings(**{"allow_private": True, "timeout_s": 20, **hook})
        settings = Settings(home=tmp_path, notify=notify, hook=its)
        send("ops", Content(title, text), "minutebook-1", settings, is_good=True)

    return told


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as server:
        yield server
