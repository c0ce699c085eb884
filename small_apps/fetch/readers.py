"""Sources in Python: a registered reader gives its rows, fresh each time."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from minutehand.readers import RegisteredReader, registered_readers
from minutehand.steps import StepContext, StepFailed
from models.problems import path_of, remedy_of, unknown_name
from models.references import is_reference
from runtime.config import Settings
from runtime.references import SecretMissing, hidden, resolved
from small_apps.failures import SourceFailed, Stopped
from small_apps.fetch.rows import Bounds, write_rows
from small_apps.importing.bad_rows import Faults


def read(
    name: str,
    given: Mapping[str, Any],
    target: Path,
    context: StepContext,
    settings: Settings,
    bounds: Bounds,
) -> Faults:
    """Write the rows of the reader `name` to `target`, as JSON Lines; return what was left out.

    `given` are its parameters, with references. Raises SourceFailed for what the reader raises,
    and Stopped.
    """
    found = _registered(name)
    secrets = _secrets(found, given, settings)
    rows: Any = ()
    try:
        own = replace(context, parameters=_parameters(found, {**given, **secrets}))
        rows = found.factory(own)
        return _hidden(write_rows(rows, target, bounds, found.mapper), secrets)
    except Stopped:
        raise
    except (SourceFailed, StepFailed) as error:
        told = str(error) if isinstance(error, SourceFailed) else f"reader {name}: {error}"
        text = hidden(told, secrets.values())
        raise SourceFailed(text, permanent=error.permanent) from None
    except (Exception, SystemExit) as error:  # a user's own code, which may tell its parameters
        told = hidden(f"{type(error).__name__}: {error}", secrets.values())
        raise SourceFailed(f"reader {name}: {told}") from None
    finally:
        close = getattr(rows, "close", None)
        if callable(close):
            close()


def _registered(name: str) -> RegisteredReader:
    known = registered_readers()
    if name not in known:
        told = unknown_name("reader", name, known)
        raise SourceFailed(f'reader "{name}" {told}', permanent=True)
    return known[name]


def _secrets(
    found: RegisteredReader, given: Mapping[str, Any], settings: Settings
) -> dict[str, str]:
    """Return what the references among the parameters stand for."""
    try:
        return {
            key: resolved(value, settings.secrets)
            for key, value in given.items()
            if is_reference(value)
        }
    except SecretMissing as error:
        raise SourceFailed(f"reader {found.name}: {error}") from None


def _parameters(found: RegisteredReader, values: Mapping[str, Any]) -> BaseModel:
    try:
        return found.parameters.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        told = f"{path_of(first['loc'])} {remedy_of(first)}"
        raise SourceFailed(f"reader {found.name}: parameters.{told}", permanent=True) from None


def _hidden(faults: Faults, secrets: Mapping[str, str]) -> Faults:
    """Return the faults; what a mapper raised may tell a secret too."""
    known = secrets.values()
    faults.samples = [
        replace(one, value=hidden(one.value, known), why=hidden(one.why, known))
        for one in faults.samples
    ]
    return faults
