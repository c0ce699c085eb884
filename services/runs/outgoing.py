"""The mails that the steps of an action send when it runs now."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from minutebook.steps import Recipient
from models.action.document import ScheduledActionModel
from services.view import View


class Outgoing(View):
    """The mails of a step."""

    source: str = Field(description="The step that sends them.")
    when: str = Field(description="What must happen for it; empty if they are sent in any case.")
    count: int = Field(description="How many addresses.")
    is_asked: bool = Field(description="Whether the user of a manual run decides.")
    to: tuple[str, ...] = Field(description="All addresses.")


def outgoing_of(
    model: ScheduledActionModel,
    reached: Sequence[Recipient],
    others: Mapping[str, tuple[str, Sequence[Recipient]]],
) -> Iterator[Outgoing]:
    """Yield the mails of each step: to those whom the action reaches, or to `others`.

    These are given by the step that mails them: when, and to whom.
    """
    for step in model.operations.steps:
        is_asked = step.name in others
        when, people = others.get(step.name, ("", reached))
        if is_asked or (step.spec is not None and step.spec.sends):
            to = tuple(one.address for one in people if one.address)
            yield Outgoing(source=step.name, when=when, count=len(to), to=to, is_asked=is_asked)
