"""Fixtures of the step tests: a small app, a running operation, and its context."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa
from pydantic import BaseModel

from data import snapshots
from data.settings import FetchSettings, Settings
from data.snapshots import Row
from data.steps import publish, refresh
from data.steps.publish import PublishParameters
from data.steps.refresh import RefreshParameters
from data.store import documents as app_documents
from data.store.snapshots import Domain, domains_of
from minutebook.steps import Recipient, SmallApp, StepResult
from models.operation import AttemptKey
from models.sql import database_now
from models.store import tenants
from models.store.operations.heartbeat import RunHistory
from models.store.tenants import storing
from models.tables import actions, operations
from models.tenant.document import parse_small_app
from runtime.database import reading
from tasks import progress
from tasks.registry import registry_of
from tasks.step_context import WorkContext

OCCURRENCE = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
ANN = Recipient("ann", "ann@example.com", "Ann")
BEN = Recipient("ben", "ben@example.com", None)


def from_files(*names: str) -> dict[str, Any]:
    """Return domains, each of which the file of its name holds."""
    return {name: {"source": {"file": f"{name}.csv"}} for name in names}


@dataclass
class Progress(progress.Progress):
    phases: list[str] = field(default_factory=list)
    reports: list[tuple[int | None, int | None, str | None]] = field(default_factory=list)
    # The phases in which the data were covered.
    blocked: set[str | None] = field(default_factory=set)
    run_type: str | None = None
    rewrites: tuple[str, ...] = ()

    def report(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        self.reports.append((done, total, message))
        if blocking:
            self.blocked.add(phase)
        if phase is not None and phase not in self.phases:
            self.phases.append(phase)

    def announce(self, run_type: str, rewrites: Iterable[str]) -> None:
        self.run_type, self.rewrites = run_type, tuple(rewrites)


@dataclass
class Work:
    """A small app `shop` on a fresh database, and contexts of its operations."""

    engine: sa.Engine
    settings: Settings
    app: SmallApp = field(init=False)
    progress: Progress = field(default_factory=Progress)
    checkpoint: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        open_fetch = FetchSettings(allow_private=True)
        self.settings = self.settings.model_copy(update={"fetch": open_fetch})
        self.settings.effective_data_root.mkdir(parents=True, exist_ok=True)
        self.apply(domains={})

    def apply(self, **document: Any) -> None:
        model = parse_small_app({"name": "shop", "zone": "Europe/Paris", **document})
        with self.engine.begin() as connection:
            self.app, _applied = storing.apply(connection, model)

    def become_default(self) -> None:
        """Work for the small app `default`, whose maintenance is the installation's too."""
        with reading(self.engine) as connection:
            self.app = tenants.get(connection, "default")

    def write(self, name: str, text: str) -> None:
        (self.settings.effective_data_root / name).write_text(text)

    def has(self, **texts: str) -> None:
        """Let it have a domain for each text, which the file of its name holds."""
        self.apply(domains=from_files(*texts))
        for name, text in texts.items():
            self.write(f"{name}.csv", text)

    def imported(self, **texts: str) -> StepResult:
        self.has(**texts)
        return self.refresh()

    def staged(self, domain: str = "a") -> list[Row]:
        """Return the rows of a domain in staging."""
        staging = self.domains()[domain].staging
        return list(snapshots.read(self.settings, staging.path)) if staging else []

    def shown(self, place: str = "production") -> dict[str, dict[str, Any]]:
        """Return the documents of the small app there, by kind and name."""
        with reading(self.engine) as connection:
            return app_documents.shown(connection, self.app.id, place)

    def files(self, folder: str = "snapshots") -> list[Path]:
        """Return the files beneath a folder of the home."""
        return [one for one in (self.settings.home / folder).rglob("*") if one.is_file()]

    def domains(self) -> dict[str, Domain]:
        with reading(self.engine) as connection:
            return {one.name: one for one in domains_of(connection, self.app.id)}

    def operation(self, **columns: Any) -> UUID:
        """Record a running operation of a new action; return its id."""
        uid, operation_id = uuid4(), uuid4()
        values: dict[str, Any] = {
            "id": operation_id, "small_app_id": self.app.id, "action_uid": uid, "revision": 1,
            "occurrence_at": OCCURRENCE, "state": "running", "triggerer": "test", "queue": "quick",
            "task": "execute_scheduled_action_quick", "recorded_at": database_now(),
            "not_before": database_now(), "worker": "w", "heartbeat_at": database_now(),
        }  # fmt: skip
        with self.engine.begin() as connection:
            connection.execute(sa.insert(actions).values(self._action(uid)))
            connection.execute(sa.insert(operations).values(**{**values, **columns}))
        return operation_id

    def action_of(self, operation_id: UUID) -> UUID:
        query = sa.select(operations.c.action_uid).where(operations.c.id == operation_id)
        with reading(self.engine) as connection:
            return UUID(str(connection.execute(query).scalar_one()))

    def _action(self, uid: UUID) -> dict[str, Any]:
        return {
            "uid": uid, "small_app_id": self.app.id, "name": str(uid), "active": True,
            "document": "{}", "document_hash": "", "plan": "{}", "revision": 1,
            "created_at": database_now(), "updated_at": database_now(),
        }  # fmt: skip

    def refresh(self, given: dict[str, Any] | None = None, **parameters: Any) -> StepResult:
        """Run refresh, its parameters as a document writes them, in a context `given` so."""
        model = RefreshParameters.model_validate(parameters)
        return refresh.run(self.context(model, **(given or {})))

    def publish(self, given: dict[str, Any] | None = None, **parameters: Any) -> StepResult:
        """Run publish, its parameters as a document writes them, in a context `given` so."""
        model = PublishParameters.model_validate(parameters)
        return publish.run(self.context(model, **(given or {})))

    def context(
        self,
        parameters: BaseModel,
        *,
        recipients: Sequence[Recipient] = (),
        operation_id: UUID | None = None,
        attempt: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        attempts_left: int = 0,
        is_manual: bool = False,
        notify: bool | None = None,
        **settings: Any,
    ) -> WorkContext:
        """Return a context in which a step can run; `settings` replace some of the fixture's."""
        changed = self.settings.model_copy(update=settings)
        id = operation_id or self.operation()
        return WorkContext(
            operation_id=id,
            occurrence_at=OCCURRENCE,
            attempt=attempt,
            key=AttemptKey(id, attempt),
            subject=None,
            triggerer="test",
            parameters=parameters,
            app_source=lambda: self.app,
            recipients=recipients,
            memory_source=lambda: RunHistory(0, None, self.checkpoint),
            logger=logging.getLogger("test"),
            engine=self.engine,
            settings=changed,
            is_manual=is_manual,
            notify=notify,
            reporter=self.progress,
            time_left_source=lambda: timedelta(hours=1),
            should_stop_source=should_stop,
            attempts_left=attempts_left,
            failed_modules=registry_of(changed.step_modules).failed,
        )


def text_of(message: EmailMessage, kind: str = "plain") -> str:
    """Return a body of `message`, with plain line ends."""
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")
