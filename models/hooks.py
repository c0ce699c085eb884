"""Who is told when an action's operations end well or badly."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from models.context import Reading
from models.document import Document
from models.plan import HookPlan, Target
from models.problems import line_error
from models.values import Address, Url, parse_list, parse_whole

MOST_HOOKS = 20


def _at_most(value: object) -> object:
    hooks = parse_list(value)
    if len(hooks) > MOST_HOOKS:
        raise ValueError(f"has {len(hooks)} hooks; write at most {MOST_HOOKS}")
    return hooks


class HookModel(Document):
    """One way to be told: a mail to an address, or a POST to a URL; exactly one of the two."""

    mail: Address | None = None
    webhook: Url | None = None

    @property
    def target(self) -> Target:
        """Where the notice goes."""
        if self.mail is not None:
            return Target("mail", self.mail)
        return Target("webhook", str(self.webhook))

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of a hook that is not exactly one of mail and webhook."""
        if ("mail" in raw) == ("webhook" in raw):
            remedy = 'write either {"mail": "ann@example.com"} or {"webhook": "https://…"}'
            return [line_error((), dict(raw), remedy)]
        return []


Hooks = Annotated[tuple[HookModel, ...], BeforeValidator(_at_most)]


class HooksModel(Document):
    """What is owed at the end of an operation; `alert_after` failures in a row raise one alert.

    Where `alert_after` is not written, the installation's own is taken: the plan says None.
    """

    on_success: Hooks = ()
    on_failure: Hooks = ()
    alert_after: Annotated[int, BeforeValidator(partial(parse_whole, least=1, most=1_000))] = 3

    @property
    def plan(self) -> HookPlan | None:
        """What is owed, as `end` reads it; None when nothing was written."""
        says_when = "alert_after" in self.model_fields_set
        if not (self.on_success or self.on_failure or says_when):
            return None
        return HookPlan(
            on_success=_targets(self.on_success),
            on_failure=_targets(self.on_failure),
            alert_after=self.alert_after if says_when else None,
        )


def _targets(hooks: Hooks) -> tuple[Target, ...]:
    return tuple(dict.fromkeys(hook.target for hook in hooks))
