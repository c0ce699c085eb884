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
from runtime.references import SecretMissing, resolved
from small_apps.failures import SourceFailed, Stopped
from small_apps.faults import Faults
from small_apps.rows import Bounds, write_rows


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
    own = replace(context, parameters=_parameters(found, given, settings))
    rows: Any = ()
    try:
        rows = found.factory(own)
        return write_rows(rows, target, bounds, found.mapper)
    except (SourceFailed, Stopped):
        raise
    except StepFailed as error:
        raise SourceFailed(f"reader {name}: {error}", permanent=error.permanent) from error
    except Exception as error:  # a user's own code
        raise SourceFailed(f"reader {name}: {type(error).__name__}: {error}") from error
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


def _parameters(found: RegisteredReader, given: Mapping[str, Any], settings: Settings) -> BaseModel:
    try:
        values = {
            key: resolved(value, settings.secrets) if is_reference(value) else value
            for key, value in given.items()
        }
        return found.parameters.model_validate(values)
    except SecretMissing as error:
        raise SourceFailed(f"reader {found.name}: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        told = f"{path_of(first['loc'])} {remedy_of(first)}"
        raise SourceFailed(f"reader {found.name}: parameters.{told}", permanent=True) from None
