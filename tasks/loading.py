"""Load modules of somebody else's: bounded in time, and none can take this process down.

A module is imported in a thread of its own. What it raises, even sys.exit, is its failure; what it
prints goes to stderr; the working directory is put back, and what it adds to the module path comes
after what was there. One that ends its process (os._exit, a crash in C) is beyond help.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Thread
from types import ModuleType

GROUP = "minutehand.steps"
WITHIN_S = 30.0
LONGEST_ERROR = 1_000

ROOT = Path(__file__).resolve().parent.parent
OWN_NAMES = {
    "cli", "cron", "mail", "migrations", "minutehand", "models", "runtime", "scheduler",
    "scheduler_server", "small_apps", "tasks",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """A module to be loaded, and who names it: the setting, or an entry point of a package."""

    module: str
    told: str
    # What of the module an entry point names besides.
    attribute: str = ""


def origins_of(modules: Sequence[str], *, packages: bool) -> list[Origin]:
    """Return what is to be loaded: the modules of the setting, then those of installed packages.

    Each once; packages in the order of their names, so that every process agrees.
    """
    found = [Origin(module, f"SCHED_STEP_MODULES {module}") for module in modules]
    if packages:
        found += [one for _, one in sorted(map(_of_package, entry_points(group=GROUP)), key=_order)]
    return list({(one.module, one.attribute): one for one in reversed(found)}.values())[::-1]


def _order(named: tuple[str, Origin]) -> str:
    return named[0]


def _of_package(point: EntryPoint) -> tuple[str, Origin]:
    """Return what an entry point names, after what it is to be sorted by."""
    package, version = _package_of(point)
    told = f"entry point {point.name!r} of {f'{package} {version}' if package else 'a package'}"
    try:
        module, attribute = point.module, point.attr or ""
    except AttributeError:
        # No name of a module, such as one with a hyphen: its import says so.
        module, attribute = point.value, ""
    return f"{package}\0{point.name}", Origin(module, told, attribute)


def _package_of(point: EntryPoint) -> tuple[str, str]:
    """Return a package's name and version; empty for one that is installed in part."""
    try:
        return (point.dist.name or "", point.dist.version) if point.dist else ("", "")
    except Exception:  # whatever is wrong with it, it stops nobody but its users
        return "", ""


def load(origin: Origin, within_s: float = WITHIN_S) -> str | None:
    """Import a module; return what went wrong, None when nothing did."""
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
        raise ImportError(f"Minutehand has a package {top!r} of its own; give yours another name")
    module = importlib.import_module(origin.module)
    for name in filter(None, origin.attribute.split(".")):
        module = getattr(module, name)


def _is_ours(module: ModuleType) -> bool:
    """Whether a module is part of this program, which has its name before any other."""
    file = getattr(module, "__file__", None)
    own = (ROOT / module.__name__ / "__init__.py", ROOT / f"{module.__name__}.py")
    return module.__name__ in OWN_NAMES and file is not None and Path(file).resolve() in own


@contextmanager
def _kept() -> Iterator[None]:
    """Keep the working directory, the module path and stdout of this process."""
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
    """Return the working directory, None where somebody removed it."""
    try:
        return os.getcwd()
    except OSError:
        return None
