"""The context in which a document is read, and the places of its keys, as its models say."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, get_args

from pydantic import BaseModel, ValidationInfo

from minutebook import steps as declared
from minutebook.steps import Steps, StepSpec
from models.celery_task import NO_TASKS, CeleryRules
from models.trust import TRUSTED, Trust

DEFAULT_TICK = timedelta(minutes=1)
# The shortest tick a daemon may have.
LEAST_TICK = timedelta(seconds=1)
# What other schedulers call a key.
ALIASES: Mapping[str, str] = {"tz": "timezone"}
DEEPEST = 3
Models = Sequence[type[BaseModel]]
_places: ContextVar["Places | None"] = ContextVar("places of the keys", default=None)


class KnownSteps(dict[str, StepSpec]):
    """The steps of a process by name.

    `failures` holds one sentence for each module that could not be loaded. `lacking` names the
    extras that no worker has: an action that needs one is refused.
    """

    def __init__(
        self, specs: Steps, failures: Sequence[str] = (), lacking: Collection[str] = ()
    ) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)
        self.lacking = frozenset(lacking)


def why_unknown(steps: Steps) -> str:
    """Return the text to add to "is not known": the modules that failed to load."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    return "".join(f"; {failure}" for failure in failures)


def lacking(steps: Steps) -> frozenset[str]:
    """Return the extras that no worker has."""
    return steps.lacking if isinstance(steps, KnownSteps) else frozenset()


# The calendars of a small app by name, each a list of dates as `except` has them.
Calendars = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How one document is read: pydantic's validation context.

    `default_zone` is the small app's; `now` is aware UTC, without it no due date is too late;
    `steps` are all that are known, by name. For an existing action, `created_at` is its creation.
    `kept_due_dates` may be past: those of its stored document, or None for any. `tick` is the
    shortest interval that the daemon can keep. `tolerant` ignores unknown keys and steps.
    """

    default_zone: str = "UTC"
    now: datetime | None = None
    steps: Steps = field(default_factory=dict)
    created_at: datetime | None = None
    kept_due_dates: frozenset[datetime] | None = frozenset()
    tick: timedelta = LEAST_TICK
    tolerant: bool = False
    calendars: Calendars = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParseContext(Reading):
    """How an action is read that is saved: with what is allowed to it.

    `celery` says which tasks of the user's Celery application may be sent; None leaves that check
    to the sender.
    """

    default_zone: str
    now: datetime
    steps: Steps
    tick: timedelta = DEFAULT_TICK
    # Whether the existing action is paused: it stays so unless its document says `active`.
    is_paused: bool = False
    celery: CeleryRules | None = NO_TASKS
    # How far the small app is trusted; checked again at run.
    trust: Trust = TRUSTED
    # Programs that the settings allow; None leaves that check to the worker.
    commands: tuple[str, ...] | None = ()
    # Channels that the settings name; None leaves that check to the worker.
    channels: tuple[str, ...] | None = ()


# Without a context, a document may name each of our own steps that this process has declared.
PLAIN = Reading(steps=declared._built_in)


def reading_of(info: ValidationInfo) -> Reading:
    """Return the reading in `info`, or a plain strict one."""
    return info.context if isinstance(info.context, Reading) else PLAIN


class Places:
    """The paths of a document that is read as `root`, and the keys of each."""

    def __init__(self, root: type[BaseModel], steps: Steps) -> None:
        self._root, self._steps = root, steps

    @cached_property
    def _keys(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        _collect(found, (), (self._root,), self._steps)
        return found

    def hint(self, key: str, known: set[str]) -> str:
        """Return where to write a key instead of beside the `known` ones, empty if it is unclear.

        Of several places the highest count. A key that the document must have is there already.
        """
        word = ALIASES.get(key, key)
        holding = sorted(path for path, keys in self._keys.items() if word in keys)
        here = {path for path, keys in self._keys.items() if known <= keys}
        # One kind of rule may have what another, at the same path, has not.
        if not here or (known and not here.isdisjoint(holding)):
            return ""
        depth = min(map(_depth, holding), default=0)
        places = [f'"{path}"' for path in holding if _depth(path) == depth and path]
        if not places and (not holding or self._root.model_fields[word].is_required()):
            return ""
        if len(places) > 1 and known != self._keys[""]:
            return ""
        where = f"in {' or '.join(places)}" if places else "at the top of the document"
        return f"is not a key here; write it {where}" + (f', as "{word}"' if word != key else "")


@contextmanager
def places_known(root: type[BaseModel], steps: Steps) -> Iterator[None]:
    """Let hints within the block name the places of a document that is read as `root`."""
    token = _places.set(Places(root, steps))
    try:
        yield
    finally:
        _places.reset(token)


def place_of(key: str, known: set[str]) -> str:
    """Return the hint of `Places` in the document that is being read, empty without one."""
    places = _places.get()
    return places.hint(key, known) if places else ""


def keys_of(model: type[BaseModel]) -> Mapping[str, Models]:
    """Return the keys of a model, each with the models that its value is read as."""
    fields = model.model_fields.items()
    return {field.alias or name: [*_models_in(field.annotation)] for name, field in fields}


def _collect(
    found: dict[str, set[str]], path: tuple[str, ...], models: Models, steps: Steps
) -> None:
    for model in models:
        # `when` and `operations` are read as one of many models.
        held = model.held(steps) if hasattr(model, "held") else keys_of(model)
        found[".".join(path)] |= held.keys()
        if len(path) < DEEPEST:
            for key, below in held.items():
                _collect(found, (*path, key), below, steps)


def _depth(path: str) -> int:
    return len(path.split(".")) if path else 0


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models of which an annotation admits one, or a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif getattr(annotation, "__origin__", None) is not dict:
        for one in get_args(annotation):
            yield from _models_in(one)
