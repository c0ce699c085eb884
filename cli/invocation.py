"""What every command is given: settings, database, the small app it works on, how it prints."""

import getpass
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa
import typer

from broker.celery_rules import rules_of
from minutehand.steps import SmallApp
from models.errors import NotFound
from models.store.schema import check_schema, current_revision
from runtime.config import Settings, load_settings
from runtime.database import make_engine, reading
from scheduler.changes.default_actions import migrate
from scheduler.changes.validation import Author
from small_apps.store import small_apps
from tasks.registry import Registry, registry_of


@dataclass
class Invocation:
    """One call of the command line."""

    home: Path | None = None
    app_name: str = "default"
    as_json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings of the home folder; raises InvalidSetting."""
        return load_settings(self.home)

    @cached_property
    def engine(self) -> sa.Engine:
        """The database, with this release's schema; the embedded one is made when it is new."""
        engine = make_engine(self.settings)
        with reading(engine) as connection:
            is_new_embedded = (
                not self.settings.database_url.get_secret_value()
                and current_revision(connection) is None
            )
        if is_new_embedded:
            migrate(engine)
        with reading(engine) as connection:
            check_schema(connection)
        return engine

    @cached_property
    def registry(self) -> Registry:
        """The steps that this process knows."""
        return registry_of(self.settings.step_modules)

    @cached_property
    def small_app(self) -> SmallApp:
        """The small app of `--app`; raises NotFound."""
        with reading(self.engine) as connection:
            return small_apps.get(connection, self.app_name)

    @property
    def actor(self) -> str:
        """Who runs the command."""
        return account()

    @property
    def remover(self) -> Author:
        """Who deletes: no step needs to be known for that, and none is loaded."""
        return Author(self.actor, self.small_app, {})

    @property
    def author(self) -> Author:
        """Who changes actions: the account that runs the command."""
        tick = timedelta(seconds=self.settings.scheduler.tick_seconds)
        kept_for = self.settings.retention.kept_for
        specs, rules = self.registry.user_specs(), rules_of(self.settings)
        return Author(self.actor, self.small_app, specs, tick, kept_for, rules)


def existing(context: typer.Context) -> Invocation:
    """Return the invocation of a command that looks at what is there.

    Raises NotFound where no Minutehand is, rather than making a new one by looking.
    """
    invocation = of(context)
    settings = invocation.settings
    is_embedded = not settings.database_url.get_secret_value()
    if is_embedded and not (settings.home / "minutehand.db").exists():
        raise NotFound(
            f"there is no Minutehand in {settings.home}; run `minutehand up`, or name its folder by"
            " --home"
        )
    return invocation


def account() -> str:
    """Return the name of the account that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def of(context: typer.Context) -> Invocation:
    """Return the invocation that a command belongs to."""
    invocation = context.find_object(Invocation)
    if invocation is None:
        raise RuntimeError("the command line has no invocation")
    return invocation
