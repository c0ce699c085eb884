"""Values of settings that have names of their own, such as connections and brokers."""

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, SecretStr

_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,62}")
V = TypeVar("V")


class Named(dict[str, V]):
    """Values by name; immutable and hashable, as caches use settings as their key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def object_of(value: object) -> object:
    """Return the object in a variable's JSON; other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('write JSON such as {"name": "value"}') from None


def _channels(value: dict[str, SecretStr]) -> Named[SecretStr]:
    for name, url in value.items():
        if not _CHANNEL.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a channel; write lowercase letters, digits and _"
            )
        if ":" not in url.get_secret_value():
            raise ValueError(
                f"{name}: write a URL of Apprise such as slack://TOKEN_A/TOKEN_B/TOKEN_C, or a "
                "reference to it: env:NAME or file:/absolute/path"
            )
    return Named(value)


Channels = Annotated[dict[str, SecretStr], BeforeValidator(object_of), AfterValidator(_channels)]
