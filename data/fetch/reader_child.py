"""The child process of a reader: loads its module, and writes its rows."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from data.failures import SourceFailed, Stopped
from data.fetch.rows import Bounds, write_rows
from data.importing.bad_rows import BadRows
from data.settings import FetchSettings
from minutebook.error_text import text_of
from minutebook.readers import RegisteredReader, registered_readers
from minutebook.steps import Recipient, SmallApp, StepContext, StepFailed
from models.problems import path_of, remedy_of
from runtime.clock import monotonic
from runtime.references import hidden
from tasks.bounded.child import Call


@dataclass
class ReaderContext(StepContext):
    """The StepContext of a reader; what it reports goes to the worker."""

    call: Call
    ends_at: float

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report the reader's progress."""
        self.call.note("step progress", [done, total, message, phase, blocking])

    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""
        return timedelta(seconds=max(0.0, self.ends_at - monotonic()))

    def should_stop(self) -> bool:
        """Return True if the reader should end soon."""
        return self.call.watch.is_stopped


class _Noted(logging.Handler):
    """Sends log lines to the worker."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        self._call.note("log", [record.levelno, self.format(record)])


def answer(call: Call) -> Mapping[str, Any]:
    """Write the rows of the call's reader; called in the child."""
    given = call.arguments
    found = _loaded(given["reader"], given["module"])
    call.limit()
    context = _context(call, found)
    settings = FetchSettings.model_validate(given["settings"])
    bounds = Bounds(f"reader {found.name}", settings, call.watch)
    bad_rows = _read(found, context, Path(given["target"]), bounds, given["secrets"])
    return {"bad_rows": asdict(bad_rows), "checkpoint": context.checkpoint}


def _loaded(name: str, module: str) -> RegisteredReader:
    try:
        resolve_name(module)
    except (Exception, SystemExit) as error:  # user code
        text = f"reader {name}: {module} cannot be imported: {text_of(error)}"
        raise SourceFailed(text) from None
    known = registered_readers()
    if name not in known:
        raise SourceFailed(f"reader {name}: {module} does not register it each time it is imported")
    return known[name]


def _read(
    found: RegisteredReader,
    context: StepContext,
    target: Path,
    bounds: Bounds,
    secrets: Sequence[str],
) -> BadRows:
    rows: Any = ()
    try:
        rows = found.factory(context)
        mapper = None if found.mapper_of is None else found.mapper_of(context)
        return _hidden(write_rows(rows, target, bounds, mapper), secrets)
    except (Stopped, MemoryError):
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


def _context(call: Call, found: RegisteredReader) -> ReaderContext:
    given = dict(call.arguments["context"])
    last = given.pop("last_success_at")
    logger = logging.Logger(f"minutebook.reader.{found.name}")
    logger.addHandler(_Noted(call))
    return ReaderContext(
        operation_id=UUID(given.pop("operation_id")),
        occurrence_at=datetime.fromisoformat(given.pop("occurrence_at")),
        small_app=SmallApp(**given.pop("small_app")),
        recipients=[Recipient(**one) for one in given.pop("recipients")],
        last_success_at=datetime.fromisoformat(last) if last else None,
        parameters=_parameters(found, call.arguments["parameters"]),
        logger=logger,
        call=call,
        ends_at=monotonic() + given.pop("left_s"),
        **given,
    )


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
