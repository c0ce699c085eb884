"""Import user modules with a time limit, isolated from this process.

Each import runs in its own thread. Whatever the module raises, even SystemExit, is reported as its
failure; its output goes to stderr; the working directory is restored, and its additions to the
module path move to the end. Nothing protects from a module that ends the process (os._exit).
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from operator import itemgetter
from pathlib import Path
from threading import Thread
from types import ModuleType

GROUP = "minutebook.steps"
WITHIN_S = 30.0
LONGEST_ERROR = 1_000

ROOT = Path(__file__).resolve().parent.parent
OWN_NAMES = {
    "broker", "cli", "cron", "data", "interop", "migrations", "minutebook", "models", "processes",
    "runtime", "scheduler", "scheduler_server", "services", "tasks", "web",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """A module to load, and its source: the setting, or an entry point of a package."""

    module: str
    source: str
    # The object that an entry point names in the module.
    attribute: str = ""


def origins_of(modules: Sequence[str], *, packages: bool) -> list[Origin]:
    """Return the modules to load: those of the setting, then those of installed packages.

    Each module appears once; packages are sorted by name, so that all processes agree.
    """
    found = [Origin(module, f"SCHED_STEP_MODULES {module}") for module in modules]
    if packages:
        named = map(_of_package, entry_points(group=GROUP))
        found += [one for _, one in sorted(named, key=itemgetter(0))]
    return list({(one.module, one.attribute): one for one in reversed(found)}.values())[::-1]


def _of_package(point: EntryPoint) -> tuple[str, Origin]:
    """Return the sort key and the module of an entry point."""
    package, version = _package_of(point)
    source = f"entry point {point.name!r} of {f'{package} {version}' if package else 'a package'}"
    try:
        module, attribute = point.module, point.attr or ""
    except (AttributeError, AssertionError):  # the second one since Python 3.13
        # Not a module name, such as one with a hyphen: the import reports it.
        module, attribute = point.value, ""
    return f"{package}\0{point.name}", Origin(module, source, attribute)


def _package_of(point: EntryPoint) -> tuple[str, str]:
    """Return a package's name and version; empty if its installation is broken."""
    try:
        return (point.dist.name or "", point.dist.version) if point.dist else ("", "")
    except Exception:  # a broken package affects only the actions that use it
        return "", ""


def load(origin: Origin, within_s: float = WITHIN_S) -> str | None:
    """Import a module; return the error, None on success."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            _import(origin)
        except BaseException as error:  # a module that exits is as broken as one that raises
            errors.append(error)

    thread = Thread(target=run, name=f"load {origin.module}", daemon=True)
    with _kept():
        thread.start()
        thread.join(within_s)
    if thread.is_alive():
        return f"took longer than {within_s:g} s to import"
    if not errors:
        return None
    with suppress(Exception):
        return f"{type(errors[0]).__name__}: {errors[0]}"[:LONGEST_ERROR]
    return type(errors[0]).__name__


def _import(origin: Origin) -> None:
    top = origin.module.partition(".")[0]
    if _is_ours(importlib.import_module(top)):
        raise ImportError(f"Minutebook has a package {top!r} of its own; give yours another name")
    module = importlib.import_module(origin.module)
    for name in filter(None, origin.attribute.split(".")):
        module = getattr(module, name)


def _is_ours(module: ModuleType) -> bool:
    """Whether a module is part of this program."""
    file = getattr(module, "__file__", None)
    own = (ROOT / module.__name__ / "__init__.py", ROOT / f"{module.__name__}.py")
    return module.__name__ in OWN_NAMES and file is not None and Path(file).resolve() in own


@contextmanager
def _kept() -> Iterator[None]:
    """Preserve the working directory, the module path and stdout of this process."""
    path = list(sys.path)
    folder = _folder()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path[:] = [*path, *(one for one in sys.path if one not in path)]
        if folder is not None and _folder() != folder:
            with suppress(OSError):
                os.chdir(folder)


def _folder() -> str | None:
    """Return the working directory, None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None
