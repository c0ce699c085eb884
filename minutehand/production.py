"""Read what is published, from a Python program of one's own."""

import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, cast

ROOT = Path(__file__).resolve().parent.parent
# What reading loads of ours, under names that a program may have for its own.
OWN_PACKAGES = ("cron", "models", "runtime", "small_apps")


class Production(Protocol):
    """One whole version of a small app's data, design and permissions, held open for reading."""

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains that can be read."""

    @property
    def design(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the design, by name."""

    @property
    def permissions(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the permissions, by name."""

    @property
    def published_at(self) -> datetime | None:
        """When the newest of it was published; None before the first publish."""

    def rows(self, domain: str) -> Iterator[dict[str, Any]]:
        """Return the rows of a domain, in order."""

    def snapshot_id(self, domain: str) -> str:
        """Return the id of the domain's snapshot: another one means other data."""

    def close(self) -> None:
        """Let the files go."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...


def open_production(
    app: str, home: str | Path | None = None, domains: Collection[str] | None = None
) -> Production:
    """Return what the small app `app` has in production now: one whole version, never a mix.

    What is published later does not change it. All its domains are held open, or those that
    `domains` names: close it, or use it in a `with` statement. Settings are read as by the command
    `minutehand`, `home` being its `--home`. Raises an error with a text for people: a small app or
    domain that nobody knows, a domain that was never published, a database that is away;
    ImportError where a module of the program's own has the name of one of ours.
    """
    _check_names()
    config, database = _loaded("runtime.config"), _loaded("runtime.database")
    reading = _loaded("small_apps.snapshots.production")
    settings = config.load_settings(None if home is None else Path(home))
    engine = database.make_engine(settings)
    if not database.is_made(engine):
        raise FileNotFoundError(f"there is no Minutehand in {settings.home}; name its folder")
    try:
        return cast(Production, reading.open_version(engine, settings, app, only=domains))
    finally:
        engine.dispose()


def _loaded(name: str) -> Any:
    """Return one of our modules, wherever the program looks for its own first."""
    sys.path.insert(0, str(ROOT))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT))


def _check_names() -> None:
    for name in OWN_PACKAGES:
        file = getattr(sys.modules.get(name), "__file__", None)
        is_ours = file is not None and Path(file).resolve() == ROOT / name / "__init__.py"
        if name in sys.modules and not is_ours:
            raise ImportError(
                f"this program has loaded a module {name!r} of its own, and Minutehand has one too "
                f"({file}); read in a process without it, such as `minutehand app data`"
            )
