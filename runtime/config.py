"""Settings: defaults < `config.yaml` in the home folder < environment `SCHED_…`.

`SCHED_<SECTION>_<KEY>` is the same as `section: {key: …}` in the file. A wrong or contradicting
value stops the start with `InvalidSetting`, which names the variable.
"""

import difflib
import os
import sqlite3
from collections.abc import Mapping
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from runtime.folders import fault_of
from runtime.logs.events import EventLog
from runtime.plug_ins import added
from runtime.references import resolved_setting
from runtime.remedies import explained
from runtime.sections import (
    AlertSettings,
    HookSettings,
    MailSettings,
    Names,
    SecretSettings,
    Section,
)
from runtime.sections.celery import CelerySettings
from runtime.sections.commands import why_no_command
from runtime.sections.limits import LimitSettings
from runtime.sections.named import Channels, Named
from runtime.sections.processes import (
    LogSettings,
    RetentionSettings,
    SchedulerSettings,
    WorkerSettings,
)
from runtime.sections.variables import NO_SETTINGS, PREFIX, named_path, put, variable_of
from runtime.sections.web import WebSettings, WorkSettings
from runtime.urls import check_broker_url, check_database_url, check_smtp_url, database_url

if TYPE_CHECKING:
    # As in runtime/urls.py.
    import sqlalchemy as sa

DEFAULT_HOME = Path(".minutebook")
# A unix socket's path has at most 107 bytes on Linux and 103 on macOS.
LONGEST_SOCKET_PATH = 100
# The first with strict tables.
OLDEST_SQLITE = (3, 37)

_URL_CHECKS = {
    "database_url": check_database_url,
    "broker_url": check_broker_url,
    "smtp_url": check_smtp_url,
}

logger = EventLog("minutebook.config")


class InvalidSetting(ValueError):
    """A setting is wrong or contradicts another; the text names the variable."""


class Settings(Section):
    """All settings; `load_settings` makes them once per process."""

    # Another one with the settings of plug-ins may be used.
    model_config = ConfigDict(defer_build=True)

    home: Path = Field(description="folder of all files")
    database_url: SecretStr = Field(
        SecretStr(""), description="SQLAlchemy URL; SQLite in the home folder by default"
    )
    broker_url: SecretStr = Field(
        SecretStr(""), description="Celery broker; the embedded one by default"
    )
    smtp_url: SecretStr = Field(
        SecretStr(""),
        description="smtp://user:password@host:port, smtps://…; a folder of .eml files by default",
    )
    step_modules: Names = Field((), description="Python modules that register steps, by commas")
    commands: Names = Field(
        (),
        description="programs that the step `command` may run, with the variables that each may "
        "get, as in backup.sh(DAY TARGET_*), or the word shell; by commas",
    )
    scheduler: SchedulerSettings = SchedulerSettings()
    worker: WorkerSettings = WorkerSettings()
    mail: MailSettings = MailSettings()
    notify: Channels = Field(
        Named(),
        description="channels that hooks may notify, by name: a URL of Apprise or reference",
    )
    hook: HookSettings = HookSettings()
    alert: AlertSettings = AlertSettings()
    celery: CelerySettings = CelerySettings()
    retention: RetentionSettings = RetentionSettings()
    secrets: SecretSettings = SecretSettings()
    limits: LimitSettings = LimitSettings()
    web: WebSettings = WebSettings()
    work: WorkSettings = WorkSettings()
    log: LogSettings = LogSettings()

    @field_validator("commands")
    @classmethod
    def _known_variables(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if (why := why_no_command(text)) is not None:
                raise ValueError(f"{text!r} {why}")
        return value

    @field_validator("database_url", "broker_url", "smtp_url")
    @classmethod
    def _known_server(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        text = resolved_setting(value.get_secret_value())
        if text:
            _URL_CHECKS[str(info.field_name)](text)
        return SecretStr(text)

    @model_validator(mode="after")
    def _channels_are_known(self) -> Self:
        for name in self.alert.notify:
            if name not in self.notify:
                raise ValueError(
                    f"alert.notify names {name!r}; set SCHED_NOTIFY_{name.upper()} too"
                )
        return self

    # The only folder beneath the data root that may be read; empty for all of it.
    _folder: str = PrivateAttr("")

    @property
    def folder(self) -> str:
        """The folder beneath the data root that sources may read; empty for all of it."""
        return self._folder

    def restricted_to(self, folder: str) -> Self:
        """Return the settings for the work of a restricted small app with this folder.

        They have no secrets, channels and programs, and no private addresses.
        """
        copy = self.model_copy(
            update={
                "secrets": SecretSettings(),
                "notify": Named(),
                "commands": (),
                "hook": self.hook.model_copy(update={"allow_private": False}),
            }
        )
        copy._folder = folder
        return copy

    @property
    def uses_embedded_broker(self) -> bool:
        """Whether the broker is the Valkey server that `minutebook up` starts."""
        return not self.broker_url.get_secret_value()

    @cached_property
    def socket_path(self) -> Path:
        """The embedded broker's socket: in the home folder, or at a short path derived from it.

        The short path is used if the other is too long or a URL would have to quote it.
        """
        path = self.home / "broker.sock"
        if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH and quote(os.fsencode(path)) == str(path):
            return path
        digest = sha256(os.fsencode(self.home)).hexdigest()[:16]
        return temporary_folder() / f"minutebook-{os.getuid()}-{digest}" / "broker.sock"

    @property
    def effective_broker_url(self) -> str:
        """The broker's URL with its secrets: do not log."""
        return self.broker_url.get_secret_value() or f"redis+socket://{self.socket_path}"

    @property
    def effective_database_url(self) -> "sa.URL":
        """The database's URL with its secrets: do not log."""
        from sqlalchemy import URL

        own = URL.create("sqlite", database=str(self.home / "minutebook.db"))
        text = self.database_url.get_secret_value()
        return database_url(text) if text else own

    @property
    def shown_database_url(self) -> str:
        """The database's URL without its password, and without its query, which may hold it too."""
        return self.effective_database_url.set(query={}).render_as_string(hide_password=True)


@cache
def settings_model() -> type[Settings]:
    """Return the settings with those that plug-ins add."""
    parts = tuple(added("settings"))
    return type("Settings", parts, {}) if len(parts) > 1 else next(iter(parts), Settings)


def load_settings(home: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `home` (default: SCHED_HOME, then `.minutebook`).

    Raises InvalidSetting with one line per wrong setting.
    """
    environ = os.environ if environ is None else environ
    try:
        folder = (home or Path(environ.get("SCHED_HOME") or DEFAULT_HOME)).absolute()
    except FileNotFoundError:
        raise InvalidSetting(
            "SCHED_HOME: the current folder no longer exists; change to another one"
        ) from None
    file = folder / "config.yaml"
    values = _read_file(file)
    names = _overlay(values, environ)
    values["home"] = folder
    try:
        settings = settings_model().model_validate(values)
    except ValidationError as error:
        raise InvalidSetting(explained(error, names, file)) from None
    if settings.uses_embedded_broker:
        check_socket_folder(settings)
    if settings.effective_database_url.get_backend_name() == "sqlite":
        check_sqlite(sqlite3.sqlite_version_info)
    return settings


def temporary_folder() -> Path:
    """Return the system's folder for temporary files; raises InvalidSetting if it has none."""
    try:
        return Path(gettempdir())
    except FileNotFoundError:
        raise InvalidSetting(
            "TMPDIR: no folder for temporary files can be written; name one, or make room or mount "
            "one at /tmp"
        ) from None


def check_socket_folder(settings: Settings) -> None:
    """Raise InvalidSetting if another account may have made the embedded broker's short folder.

    Its name is predictable, and its owner could send operations to our workers.
    """
    folder = settings.socket_path.parent
    fault = fault_of(folder) if folder != settings.home else None
    if fault is not None:
        raise InvalidSetting(
            f"SCHED_BROKER_URL: the embedded broker's folder {folder} {fault}; remove that folder, "
            "or choose a home folder with a shorter, plain path"
        )


def check_sqlite(release: tuple[int, ...]) -> None:
    """Raise InvalidSetting if this release of SQLite has no strict tables."""
    if release < OLDEST_SQLITE:
        found, oldest = (".".join(map(str, one)) for one in (release, OLDEST_SQLITE))
        raise InvalidSetting(
            f"SCHED_DATABASE_URL: Python's module sqlite3 has SQLite {found}; use a Python with "
            f"SQLite {oldest} or newer, or write postgresql://USER:PASSWORD@HOST/NAME"
        )


def _read_file(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        from runtime.documents import read_yaml

        values = read_yaml(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSetting(f"{file} cannot be read: {reason}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidSetting(f"{file} must be a mapping such as 'worker: {{quick: 4}}'")
    return values


def _overlay(values: dict[str, Any], environ: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Put the environment over the file's values; return the variable that set each path."""
    names = {}
    paths = {variable_of(path): path for path in setting_paths()}
    for variable, value in sorted(environ.items()):
        path = paths.get(variable) or named_path(variable)
        if path is not None:
            _place(values, path, value)
            names[path] = variable
    for warning in unknown_variables(environ):
        # No error: Kubernetes sets SCHED_SERVICE_HOST for a service named "sched".
        logger.warning("setting_unknown", "unknown setting: {setting}", warning)
    return names


def _place(values: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    try:
        put(values, path, value)
    except ValueError as error:
        raise InvalidSetting(str(error)) from None


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return one warning for each variable that looks like a setting but is none."""
    known = [variable_of(path) for path in setting_paths()]
    warnings = []
    for variable in sorted(environ):
        is_known = variable in (*known, *NO_SETTINGS) or named_path(variable) is not None
        if variable.startswith(PREFIX) and not is_known:
            nearest = difflib.get_close_matches(variable, known, 1)
            hint = "".join(f"; did you mean {one}?" for one in nearest)
            warnings.append(f"{variable} is not a setting{hint}")
    return warnings


def setting_paths() -> list[tuple[str, ...]]:
    """Return the path of every setting: ("broker_url",), ("worker", "lease_s"), …"""
    paths: list[tuple[str, ...]] = []
    for name, field in settings_model().model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            paths += [(name, key) for key in kind.model_fields]
        elif name != "home":
            paths.append((name,))
    return paths
