"""Register user-defined readers: functions that return the rows of a domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Optional

from pydantic import BaseModel

from minutebook.steps import NoParameters

Row = Mapping[str, Any]
# Gets the StepContext, its `parameters` those of the source; returns fresh rows each time.
Factory = Callable[[Any], Iterable[Row]]
# Gets a row and the StepContext; returns the row to keep, or None to drop it. An exception is
# reported and drops the row.
Mapper = Callable[[Row, Any], Optional[Row]]


@dataclass(frozen=True)
class RegisteredReader:
    """A user-defined reader: its name in `source`, its factory, mapper and parameters."""

    name: str
    factory: Factory
    mapper: Mapper | None
    parameters: type[BaseModel]


_registered: dict[str, RegisteredReader] = {}


def reader(
    name: str,
    *,
    mapper: Mapper | None = None,
    parameters: type[BaseModel] | None = None,
) -> Callable[[Factory], Factory]:
    """Register the decorated factory as the reader `name`.

    The factory takes a StepContext with the source's `parameters`, validated by the model
    `parameters`, and returns a fresh iterable of rows. `mapper` takes a row and the context. Raises
    ValueError for a name that is taken, and TypeError for a mapper that does not take both.
    """
    if mapper is not None:
        _check_mapper(name, mapper)

    def register(factory: Factory) -> Factory:
        known = _registered.get(name)
        if known is not None and known.factory.__module__ != factory.__module__:
            raise ValueError(f"reader {name!r} is registered twice")
        _registered[name] = RegisteredReader(name, factory, mapper, parameters or NoParameters)
        return factory

    return register


def _check_mapper(name: str, mapper: Mapper) -> None:
    try:
        signature(mapper).bind(None, None)
    except TypeError:
        raise TypeError(
            f"reader {name!r}: its mapper must take two arguments, the row and the context"
        ) from None
    except ValueError:
        # Some that are written in C do not say.
        return


def registered_readers() -> dict[str, RegisteredReader]:
    """Return the readers registered so far in this process, by name."""
    return dict(_registered)
