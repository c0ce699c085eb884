"""The task of the Celery application that an operation sends, with its secrets hidden."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from minutebook.error_text import is_secret_name
from runtime.sections.celery import HIDDEN, CelerySettings
from services.view import View

if TYPE_CHECKING:
    from models.action.plan import Plan, UnreadablePlan


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class SentTask(View):  # type: ignore[no-redef]
    """The task of the application that an operation sends."""

    name: str = Field(description="Its name, as the application registers it.")
    args: tuple[Any, ...] = Field(description="Its arguments by position.")
    kwargs: Any = Field(description="Its arguments by name.")


def sent_task(plan: "Plan | UnreadablePlan | None", settings: CelerySettings) -> SentTask | None:
    """Return the task that a plan sends; None if it runs steps or a job."""
    # A broken plan hands over nothing.
    handed = getattr(plan, "hand_over", None)
    if handed is None:
        return None
    secret = settings.secret
    its = {"args": handed.args, "kwargs": handed.kwargs}
    shown = its if secret is None else {key: _without(secret, one) for key, one in its.items()}
    return SentTask(name=handed.task, **shown)


def _without(secret: re.Pattern[str], value: Any) -> Any:
    """Return a value of JSON with what is secret in its texts hidden."""
    match value:
        case str():
            return secret.sub(HIDDEN, value)
        case Mapping():
            return {key: _named(secret, key, one) for key, one in value.items()}
        case Sequence():
            return [_without(secret, one) for one in value]
        case _:
            return value


def _named(secret: re.Pattern[str], name: str, value: Any) -> Any:
    """Return a named value; its name may say that it is secret: `password=…`."""
    if is_secret_name(name):
        return HIDDEN
    # The expression of an installation may name more.
    found = secret.search(f"{name}={value}")
    return HIDDEN if found and found.start() < len(name) else _without(secret, value)
