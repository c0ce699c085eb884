"""An opened installation: settings, database, steps, and the small app that a request is about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from pydantic import Field

from minutebook.steps import SmallApp
from models.errors import NotFound, Refused
from models.store import audit, tenants
from models.store.schema import (
    check_schema,
    current_revision,
)
from models.store.scope import WHOLE_INSTALLATION, Scope
from runtime.config import Settings, load_settings
from runtime.database import CONNECTIONS, make_engine, reading
from runtime.folders import account_name, make_private
from services.view import Listing, View

T = TypeVar("T")

TEMPLATES = Path(__file__).with_name("start")
ACTION = "hello.yaml"
SETTINGS = "config.yaml"

if TYPE_CHECKING:
    from broker.sending import Sent
    from models.parsing import KnownSteps
    from scheduler.changes import default_actions
    from scheduler.changes.validation import ChangeContext
    from tasks.registry import Registry


class Migrated(View):
    """What a migration of the database did."""

    before: str | None = Field(description="Schema revision before; null for an empty database.")
    after: str | None = Field(description="Schema revision now.")
    maintained: tuple[str, ...] = Field(
        description="Small apps (tenants) that got their action `maintenance`."
    )


class StoppedUp(View):
    """What `down` stopped."""

    pid: int | None = Field(description="Of `minutebook up`; null if none was running.")
    home: Path = Field(description="The home folder that it ran for.")


@dataclass
class Installation:
    """An installation, opened on demand; raises InvalidSetting, NotFound and SchemaOutdated.

    `actor` is the author of changes: the bearer of a token, or the account that runs this process.
    """

    home: Path | None = None
    app_name: str = "default"
    # Whether the request may see only `app_name`.
    is_bound: bool = field(default=False, kw_only=True)
    # The author of changes; None for the account that runs this process.
    bearer: str | None = field(default=None, kw_only=True)
    # How many connections to PostgreSQL are kept open for requests at once.
    connections: int = field(default=CONNECTIONS, kw_only=True)
    # Warnings about how it was opened.
    notes: list[str] = field(default_factory=list, kw_only=True)
    _making: RLock = field(default_factory=RLock, init=False, repr=False, compare=False)

    @property
    def settings(self) -> Settings:
        """The settings of the home folder; raises InvalidSetting."""
        return self._once("settings", lambda: load_settings(self.home))

    @property
    def is_made(self) -> bool:
        """Whether the installation exists: an embedded database is a file of the home folder."""
        is_embedded = not self.settings.database_url.get_secret_value()
        return not is_embedded or (self.settings.home / "minutebook.db").exists()

    @property
    def engine(self) -> sa.Engine:
        """The database, with this release's schema; an embedded one is created if needed."""
        return self._once("engine", self._opened)

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Return what is made at the first call; the first calls of threads make one.

        From Python 3.12 on, `cached_property` makes one for each of them.
        """
        with self._making:
            if name not in self.__dict__:
                self.__dict__[name] = make()
            made: T = self.__dict__[name]
            return made

    def _opened(self) -> sa.Engine:
        engine = make_engine(self.settings, self.connections)
        try:
            with reading(engine) as connection:
                is_new_embedded = (
                    not self.settings.database_url.get_secret_value()
                    and current_revision(connection) is None
                )
            if is_new_embedded:
                _migrate(engine)
                self.note_new()
            with reading(engine) as connection:
                check_schema(connection)
        except BaseException:
            # The next request makes another one.
            engine.dispose()
            raise
        return engine

    def note_new(self) -> None:
        """Note that the installation was made now, where the user may not expect it."""
        home = self.settings.home
        self.notes.append(f"made a new Minutebook in {home}; --home names another folder")

    @property
    def registry(self) -> "Registry":
        """The steps that this process knows."""
        from tasks.registry import registry_of

        return self._once("registry", lambda: registry_of(self.settings.step_modules))

    @property
    def steps(self) -> "KnownSteps":
        """The steps that actions may name."""
        return self.registry.steps_beside(self.settings.worker.extras)

    @cached_property
    def small_app(self) -> SmallApp:
        """The small app that the request is about; raises NotFound."""
        with reading(self.engine) as connection:
            return tenants.get(connection, self.app_name)

    @property
    def scope(self) -> Scope:
        """What look-ups by id may find."""
        return Scope(self.small_app.id) if self.is_bound else WHOLE_INSTALLATION

    def for_request(self, app_name: str | None, *, is_bound: bool, bearer: str) -> "Installation":
        """Return this installation as one request sees it, with the same settings and engine."""
        made = Installation(self.home, app_name or self.app_name, is_bound=is_bound, bearer=bearer)
        shared = {"settings": self.settings, "engine": self.engine, "registry": self.registry}
        made.__dict__.update(shared)
        return made

    def may_see(self, app_name: str) -> bool:
        """Return whether the request may see a small app."""
        return not self.is_bound or app_name == self.app_name

    @property
    def actor(self) -> str:
        return account_name() if self.bearer is None else self.bearer

    def audit(
        self,
        connection: sa.Connection,
        small_app_id: int | None,
        verb: str,
        objects: Mapping[str, dict[str, Any] | None],
    ) -> None:
        """Record in the audit trail what the request's actor does to objects."""
        audit.write(
            connection, small_app_id=small_app_id, actor=self.actor, verb=verb, objects=objects
        )

    @property
    def author(self) -> "ChangeContext":
        """The context of a change in the request's small app."""
        return self.author_in(self.small_app)

    def author_in(self, app: SmallApp, expects: int | None = None) -> "ChangeContext":
        """Return the context of a change in a small app, made to the revision `expects` or any."""
        from broker.celery_rules import rules_of
        from scheduler.changes.validation import ChangeContext

        with reading(self.engine) as connection:
            trust = tenants.trust_of(connection, app.id)
            calendars = tenants.calendars_of(connection, app.id)
        return ChangeContext(
            self.actor,
            app,
            self.steps,
            self.settings.scheduler.tick,
            self.settings.retention.kept_for,
            rules_of(self.settings),
            trust,
            expects,
            self.settings.commands,
            tuple(self.settings.notify),
            calendars,
            self.settings.limits,
        )

    def remover_in(self, app: SmallApp, expects: int | None = None) -> "ChangeContext":
        """Return the context of a deletion, for which no step of a user is loaded."""
        from scheduler.changes.validation import ChangeContext
        from tasks.built_in import built_in_steps

        return ChangeContext(self.actor, app, built_in_steps(), expects=expects)

    def publish(self) -> None:
        """Prepare to send messages to the broker."""
        from broker.app import configure

        configure(self.settings)

    def why_unsent(self, sent: "Sent") -> str | None:
        """Return why messages were not sent yet, None if they were."""
        if sent.error is None:
            return None
        hint = "; is `minutebook up` running?" if self.settings.uses_embedded_broker else ""
        return f"broker unavailable; the daemon sends it later{hint}"


class StartFile(View):
    """A file to begin with."""

    path: str
    is_new: bool = Field(description="False if it existed, and was left as it is.")


class Started(Listing[StartFile]):
    """The files to begin with."""


def start(installation: Installation, folder: Path) -> Started:
    """Write a commented action into a folder, and settings into the home folder.

    No file is overwritten.
    """
    home = installation.settings.home
    try:
        make_private(home)
        return Started((_written(folder / ACTION), _written(home / SETTINGS)))
    except OSError as error:
        raise Refused(f"{error.filename} cannot be written: {error.strerror}") from None


def _written(file: Path) -> StartFile:
    """Write the template of a file's name there, unless the file exists."""
    text = (TEMPLATES / file.name).read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        return StartFile(path=str(file), is_new=False)
    return StartFile(path=str(file), is_new=True)


def existing(installation: Installation) -> Installation:
    """Return the installation; raises NotFound without one."""
    if not installation.is_made:
        raise NotFound(
            f"there is no Minutebook in {installation.settings.home}; run `minutebook up`, or name"
            " its folder with --home"
        )
    return installation


def migrate(installation: Installation) -> Migrated:
    """Upgrade the database to this release, and add the maintenance action to each small app."""
    if not installation.is_made:
        installation.note_new()
    engine = make_engine(installation.settings)
    try:
        return Migrated.of(_migrate(engine))
    finally:
        engine.dispose()


def _migrate(engine: sa.Engine) -> "default_actions.Migrated":
    from scheduler.changes import default_actions
    from tasks.built_in import built_in_steps

    return default_actions.migrate(engine, built_in_steps())
