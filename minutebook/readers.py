"""Register user-defined readers: functions that return the rows of a domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any, Optional

from pydantic import BaseModel

from minutebook.steps import NoParameters

Row = Mapping[str, Any]
# Gets the StepContext, its `parameters` those of the source; returns fresh rows each time.
Factory = Callable[[Any], Iterable[Row]]
# Returns the row to keep, or None to drop it; an exception is reported and drops the row.
Mapper = Callable[[Row], Optional[Row]]
# Gets the StepContext too, as the factory does.
MapperOfContext = Callable[[Row, Any], Optional[Row]]


@dataclass(frozen=True)
class RegisteredReader:
    """A user-defined reader: its name in `source`, its factory, mapper and parameters."""

    name: str
    factory: Factory
    # Makes the mapper of one run, from its context.
    mapper_of: Callable[[Any], Mapper] | None
    parameters: type[BaseModel]


_registered: dict[str, RegisteredReader] = {}


def reader(
    name: str,
    *,
    mapper: Mapper | MapperOfContext | None = None,
    parameters: type[BaseModel] | None = None,
) -> Callable[[Factory], Factory]:
    """Register the decorated factory as the reader `name`.

    The factory takes a StepContext with the source's `parameters`, validated by the model
    `parameters`, and returns a fresh iterable of rows. `mapper` takes a row, or a row and the
    context. Raises ValueError for a name that is taken, and TypeError for a mapper that takes
    neither.
    """
    mapper_of = None if mapper is None else _mapper_of(name, mapper)

    def register(factory: Factory) -> Factory:
        known = _registered.get(name)
        if known is not None and known.factory.__module__ != factory.__module__:
            raise ValueError(f"reader {name!r} is registered twice")
        _registered[name] = RegisteredReader(name, factory, mapper_of, parameters or NoParameters)
        return factory

    return register


def _mapper_of(name: str, mapper: Callable[..., Row | None]) -> Callable[[Any], Mapper]:
    """Return what makes a mapper of one argument, by the arguments that `mapper` requires."""
    try:
        takes = signature(mapper)
    except (TypeError, ValueError):
        # Some that are written in C do not say.
        return lambda _context: mapper
    if _fits(takes, 1):
        return lambda _context: mapper
    if _fits(takes, 2):
        return lambda context: lambda row: mapper(row, context)
    raise TypeError(
        f"reader {name!r}: its mapper must take one argument, the row, or two, the row and the "
        "context"
    )


def _fits(takes: Signature, count: int) -> bool:
    try:
        takes.bind(*(None,) * count)
    except TypeError:
        return False
    return True


def registered_readers() -> dict[str, RegisteredReader]:
    """Return the readers registered so far in this process, by name."""
    return dict(_registered)
