"""Reader sources: rows from a registered Python function, in the worker, as steps are."""

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from data.bad_rows import BadRows
from data.failures import SourceFailed, Stopped
from data.fetch.rows import Bounds, write_rows
from data.settings import Settings
from minutebook.error_text import text_of
from minutebook.readers import RegisteredReader, registered_readers
from minutebook.steps import StepContext, StepFailed
from models.hints import path_of, unknown_name
from models.problems import remedy_of
from models.values.references import is_reference
from runtime.hiding import hidden
from runtime.references import SecretMissing, resolved
from tasks.bounded.limits import Watch


def read(
    name: str,
    given: Mapping[str, Any],
    target: Path,
    context: StepContext,
    settings: Settings,
    watch: Watch,
) -> BadRows:
    """Write the rows of the reader `name` to `target`, as JSON Lines; return the rows left out.

    `given` are its parameters, with unresolved references. What the reader sets in its checkpoint
    comes into `context` if it succeeds. Raises SourceFailed for any error of the reader, and
    Stopped.
    """
    found = _registered(name)
    secrets = _secrets(found, given, settings)
    its = copy(context)
    its.checkpoint = deepcopy(context.checkpoint)
    its.parameters = _parameters(found, {**given, **secrets})
    bounds = Bounds(f"reader {name}", settings.fetch.max_bytes, watch)
    bad_rows = _read(found, its, target, bounds, list(secrets.values()))
    context.checkpoint.clear()
    context.checkpoint.update(its.checkpoint)
    return bad_rows


def _read(
    found: RegisteredReader,
    context: StepContext,
    target: Path,
    bounds: Bounds,
    secrets: Sequence[str],
) -> BadRows:
    rows: Any = ()
    try:
        rows, mapper = found.factory(context), found.mapper
        mapped = None if mapper is None else lambda row: mapper(row, context)
        return _hidden(write_rows(rows, target, bounds, mapped), secrets)
    except Stopped:
        raise
    except (SourceFailed, StepFailed) as error:
        text = str(error) if isinstance(error, SourceFailed) else f"{bounds.shown}: {error}"
        raise SourceFailed(hidden(text, secrets), permanent=error.permanent) from None
    except (Exception, SystemExit) as error:  # user code, whose errors may quote its parameters
        shown = hidden(text_of(error), secrets)
        raise SourceFailed(f"{bounds.shown}: {shown}") from None
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
        text = f"{path_of(first['loc'])} {remedy_of(first)}"
        raise SourceFailed(f"reader {found.name}: parameters.{text}", permanent=True) from None


def _hidden(bad_rows: BadRows, secrets: Sequence[str]) -> BadRows:
    """Return the bad rows without secrets; a mapper's errors may quote one."""
    bad_rows.samples = [
        replace(one, value=hidden(one.value, secrets), why=hidden(one.why, secrets))
        for one in bad_rows.samples
    ]
    return bad_rows
