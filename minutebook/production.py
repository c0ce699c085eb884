"""Read published data from your own Python program."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from minutebook.agent_place import is_server_here

if TYPE_CHECKING:
    from typing import Self

ROOT = Path(__file__).resolve().parent.parent
# Our packages that reading loads; a program may have packages of these names.
OWN_PACKAGES = ("cron", "data", "models", "runtime")


class Production(Protocol):
    """One version of a small app's data, design and permissions, open for reading."""

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the readable domains."""

    @property
    def design(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the design, by name."""

    @property
    def permissions(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the permissions, by name."""

    @property
    def published_at(self) -> datetime | None:
        """When its newest part was published; None before the first publish."""

    def rows(self, domain: str) -> Iterator[dict[str, Any]]:
        """Return the rows of a domain, in order."""

    def snapshot_id(self, domain: str) -> str:
        """Return the id of the domain's snapshot; it changes with the data."""

    def close(self) -> None:
        """Close the files."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...


def open_production(
    app: str, home: str | Path | None = None, domains: Collection[str] | None = None
) -> Production:
    """Return the version of the small app `app` that is in production now, never a mix of two.

    A later publish does not change it. It holds all domains open, or those in `domains`: close it,
    or use it in a `with` statement. Settings are read as by the command `minutebook`, with `home`
    as its `--home`. Raises an error with a readable message for an unknown small app or domain, a
    domain never published and an unavailable database; ImportError without the server in this
    environment, or if a module of the program has the name of one of the server's.
    """
    if not is_server_here():
        raise ImportError(
            "reading production needs the server in the program's environment; install it there as "
            "docs/how-to/install.md of the source shows, with the extra 'data'"
        )
    _check_names()
    config, database = _loaded("runtime.config"), _loaded("runtime.database")
    reading = _loaded("data.snapshots.production")
    settings = config.load_settings(None if home is None else Path(home))
    engine = database.make_engine(settings)
    if not database.is_made(engine):
        raise FileNotFoundError(f"there is no Minutebook in {settings.home}; name its folder")
    try:
        return cast(Production, reading.open_version(engine, settings, app, only=domains))
    finally:
        engine.dispose()


def _loaded(name: str) -> Any:
    """Return one of our modules, whatever the program's module path is."""
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
                f"this program has loaded a module {name!r} of its own, and Minutebook has one too "
                f"({file}); read in a process without it, such as `minutebook app data`"
            )
