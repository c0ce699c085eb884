"""Reader sources: rows from a registered Python function, in a child process."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.failures import SourceFailed
from data.importing.bad_rows import BadRows
from data.importing.in_child import reading_limits
from data.settings import Settings
from minutebook.readers import RegisteredReader, registered_readers
from minutebook.steps import StepContext
from models.problems import unknown_name
from models.references import is_reference
from runtime.references import SecretMissing, resolved
from tasks.bounded import client
from tasks.bounded.watch import Watch

ANSWER = "data.fetch.reader_child:answer"


def read(
    name: str,
    given: Mapping[str, Any],
    target: Path,
    context: StepContext,
    settings: Settings,
    watch: Watch,
) -> BadRows:
    """Write the rows of the reader `name` to `target`, as JSON Lines; return the rows left out.

    `given` are its parameters, with unresolved references. The reader's progress, log lines and
    checkpoint come into `context`. Raises SourceFailed for any error of the reader, and Stopped.
    """
    found = _registered(name)
    secrets = _secrets(found, given, settings)
    arguments = {
        "reader": name,
        "module": _module_of(found, context),
        "parameters": {**given, **secrets},
        "secrets": list(secrets.values()),
        "target": str(target),
        "settings": settings.fetch.model_dump(mode="json"),
        "context": _written(context),
    }
    limits = reading_limits(settings.fetch, f"reader {name}")
    call = client.Call(ANSWER, arguments, loads=True)
    made = client.run(call, limits, watch, _noted(context))
    if made["checkpoint"] != context.checkpoint:
        context.checkpoint.clear()
        context.checkpoint.update(made["checkpoint"])
    return BadRows.of_json(made["bad_rows"])


def _module_of(found: RegisteredReader, context: StepContext) -> str:
    """Return the module whose import registers the reader."""
    known: Mapping[str, str] = getattr(context, "reader_modules", {})
    return known.get(found.name) or found.factory.__module__


def _written(context: StepContext) -> dict[str, Any]:
    """Return the fields of `context` as JSON, for `reader_child.ReaderContext`."""
    app, last = context.small_app, context.last_success_at
    return {
        "operation_id": str(context.operation_id),
        "occurrence_at": context.occurrence_at.isoformat(),
        "attempt": context.attempt,
        "subject": context.subject,
        "triggerer": context.triggerer,
        "small_app": {
            "id": app.id,
            "name": app.name,
            "zone": app.zone,
            "settings": dict(app.settings),
        },
        "recipients": [asdict(one) for one in context.recipients],
        "run_number": context.run_number,
        "last_success_at": last.isoformat() if last else None,
        "checkpoint": context.checkpoint,
        "left_s": context.time_left().total_seconds(),
    }


def _noted(context: StepContext) -> Callable[[str, Any], None]:
    def note(kind: str, value: Any) -> None:
        if kind == "step progress":
            *counts, blocking = value
            context.progress(*counts, blocking=blocking)
        elif kind == "log":
            level, text = value
            context.logger.log(level, "%s", text)

    return note


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
