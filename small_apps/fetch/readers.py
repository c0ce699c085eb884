"""Reader sources: rows from a registered Python function."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from minutehand.grants import not_granted
from minutehand.readers import RegisteredReader, registered_readers
from minutehand.steps import StepContext, StepFailed
from models.problems import path_of, remedy_of, unknown_name
from models.references import is_reference
from runtime.config import Settings
from runtime.references import SecretMissing, hidden, resolved
from small_apps.failures import SourceFailed, Stopped
from small_apps.fetch.rows import Bounds, write_rows
from small_apps.importing.bad_rows import BadRows


def read(
    name: str,
    given: Mapping[str, Any],
    target: Path,
    context: StepContext,
    settings: Settings,
    bounds: Bounds,
) -> BadRows:
    """Write the rows of the reader `name` to `target`, as JSON Lines; return the rows left out.

    `given` are its parameters, with unresolved references. Raises SourceFailed for any error of
    the reader, and Stopped.
    """
    if not settings.grants.allows("readers", name):
        raise SourceFailed(f"reader {name} {not_granted('readers', name)}", permanent=True)
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
        text = str(error) if isinstance(error, SourceFailed) else f"reader {name}: {error}"
        shown = hidden(text, secrets.values())
        raise SourceFailed(shown, permanent=error.permanent) from None
    except (Exception, SystemExit) as error:  # user code, whose errors may quote its parameters
        shown = hidden(f"{type(error).__name__}: {error}", secrets.values())
        raise SourceFailed(f"reader {name}: {shown}") from None
    finally:
        close = getattr(rows, "close", None)
        if callable(close):
            close()


def _registered(name: str) -> RegisteredReader:
    known = registered_readers()
    if name not in known:
        text = unknown_name("reader", name, known)
        raise SourceFailed(f'reader "{name}" {text}', permanent=True)
    return known[name]


def _secrets(
    found: RegisteredReader, given: Mapping[str, Any], settings: Settings
) -> dict[str, str]:
    """Return the values of the references among the parameters."""
    try:
        return {
            key: resolved(value, settings.secrets, grants=settings.grants)
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
        text = f"{path_of(first['loc'])} {remedy_of(first)}"
        raise SourceFailed(f"reader {found.name}: parameters.{text}", permanent=True) from None


def _hidden(bad_rows: BadRows, secrets: Mapping[str, str]) -> BadRows:
    """Return the bad rows without secrets; a mapper's errors may quote one."""
    known = secrets.values()
    bad_rows.samples = [
        replace(one, value=hidden(one.value, known), why=hidden(one.why, known))
        for one in bad_rows.samples
    ]
    return bad_rows
