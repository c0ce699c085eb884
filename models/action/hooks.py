"""Who is told when an action's operations end well or badly."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from models.action.plan import HookPlan, Target
from models.document import Document
from models.parsing import Reading
from models.problems import line_error
from models.references import is_reference, parse_reference
from models.values import Address, parse_list, parse_url, parse_whole

MOST_HOOKS = 20
BY_REFERENCE = 'write "env:NAME" or "file:/absolute/path" and let it lie there'


def _at_most(value: object) -> object:
    if isinstance(value, str):
        kind = "webhook" if value.startswith(("http:", "https:", "env:", "file:")) else "mail"
        raise ValueError(f"write a list of objects: {json.dumps([{kind: value[:80]}])}")
    hooks = parse_list(value)
    if len(hooks) > MOST_HOOKS:
        raise ValueError(f"has {len(hooks)} hooks; write at most {MOST_HOOKS}")
    return hooks


def has_password(url: object) -> bool:
    """Return whether a text is a URL with a password in it."""
    try:
        return isinstance(url, str) and urlsplit(url).password is not None
    except ValueError:
        return False


def _webhook(value: object) -> str:
    """Return a URL, or a reference to one that is a secret: `env:NAME`, `file:PATH`."""
    if is_reference(value):
        return parse_reference(value)
    try:
        return parse_url(value)
    except ValueError as error:
        raise ValueError(f"{error}; or keep it out of here: {BY_REFERENCE}") from None


class HookModel(Document):
    """One way to be told: a mail to an address, or a POST to a URL; exactly one of the two.

    The URL may stand elsewhere: then the document, and all that is stored, holds the reference.
    """

    example = '{"mail": "ann@example.com"}'

    mail: Address | None = None
    webhook: Annotated[str, BeforeValidator(_webhook)] | None = None

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
        webhook = raw.get("webhook")
        if has_password(webhook):
            # Shown without it: errors are stored and logged.
            remedy = f"holds a password, which everybody could read here; {BY_REFERENCE}"
            return [line_error(("webhook",), None, remedy)]
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
