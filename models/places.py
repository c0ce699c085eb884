"""The places of keys: where in a document each key is written, as its models say."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, get_args

from pydantic import BaseModel

from minutebook.steps import Steps

# What other schedulers call a key.
ALIASES: Mapping[str, str] = {"tz": "timezone"}
DEEPEST = 3
Models = Sequence[type[BaseModel]]
_places: ContextVar["Places | None"] = ContextVar("places of the keys", default=None)


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
