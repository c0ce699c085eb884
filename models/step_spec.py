"""What is known of a step before it runs: the same for built-in steps and for a user's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

USER_ORDER = 1_000


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step that actions may name.

    `is_heavy` sends the action to the heavy workers; `repeatable=False` fails an operation whose
    worker was lost in this step; `needs_recipients` asks for recipients at save; `alone` allows no
    other step beside it. Steps run by `order`, those of equal order as the document has them.
    `if_true` are the parameters that a bare `true` stands for.
    """

    name: str
    parameters: type[BaseModel]
    is_heavy: bool = False
    repeatable: bool = True
    needs_recipients: bool = False
    alone: bool = False
    order: int = USER_ORDER
    if_true: Mapping[str, object] = field(default_factory=dict)
