"""The hooks of an action: notices at the end of its operations, and of what was missed."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from models.document import Document
from models.hints import listed
from models.notices import EACH, FIRST, Moment, Target
from models.parsing import Reading
from models.problems import line_error
from models.values import (
    Address,
    Name,
    one_of,
    parse_list,
    parse_url,
    parse_whole,
)
from models.values.references import is_reference, parse_reference

MOST_HOOKS = 20
BY_REFERENCE = 'write "env:NAME" or "file:/absolute/path", and store the URL there'


def _few(model: type[Document], value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f"write a list of objects: [{model.example}]")
    hooks = parse_list(value)
    if len(hooks) > MOST_HOOKS:
        raise ValueError(f"has {len(hooks)} hooks; write at most {MOST_HOOKS}")
    return hooks


def _webhook(value: object) -> str:
    """Return a URL, or a reference to a secret one: `env:NAME`, `file:PATH`."""
    if is_reference(value):
        return parse_reference(value)
    try:
        return parse_url(value)
    except ValueError as error:
        raise ValueError(f"{error}; for a secret URL {BY_REFERENCE}") from None


class HookModel(Document):
    """One notice: a mail to an address, a POST to a URL, or a message to a channel.

    The URL may be a reference to a secret: the database then holds only the reference. A channel is
    one that the settings name. `when` first: of several failures in a row the first alone, and the
    recovery.
    """

    example = '{"mail": "ann@example.com"}'

    mail: Address | None = None
    webhook: Annotated[str, BeforeValidator(_webhook)] | None = None
    notify: Name | None = None
    when: Annotated[Literal["each", "first"], BeforeValidator(one_of(EACH, FIRST))] = "each"

    @property
    def target(self) -> Target:
        """The target of the notice."""
        if self.mail is not None:
            return Target("mail", self.mail)
        if self.notify is not None:
            return Target("notify", self.notify)
        return Target("webhook", str(self.webhook))

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of a hook that is not exactly one of mail, webhook and notify."""
        if sum(key in raw for key in ("mail", "webhook", "notify")) == 1:
            return []
        remedy = (
            'write one of {"mail": "ann@example.com"}, {"webhook": "https://…"} and '
            '{"notify": "CHANNEL"}'
        )
        return [line_error((), dict(raw), remedy)]


Hooks = Annotated[tuple[HookModel, ...], BeforeValidator(partial(_few, HookModel))]


def _moments(value: object) -> Sequence[object]:
    moments = parse_list(value)
    if not moments:
        raise ValueError(f"is empty; write one or more of {listed(Moment)}")
    return moments


PingMoment = Annotated[str, BeforeValidator(one_of(*Moment))]


class PingModel(Document):
    """A request without a body, for a service that raises an alarm when it misses one.

    The URL is as that of a webhook. `at` names what it tells: without it, a success alone.
    """

    example = '{"url": "https://hc-ping.com/your-check"}'

    url: Annotated[str, BeforeValidator(_webhook)]
    method: Annotated[Literal["GET", "POST"], BeforeValidator(one_of("GET", "POST"))] = "GET"
    at: Annotated[tuple[PingMoment, ...], BeforeValidator(_moments)] = (Moment.SUCCESS,)

    @property
    def target(self) -> Target:
        """The target of its notices."""
        return Target(self.method, self.url)


Pings = Annotated[tuple[PingModel, ...], BeforeValidator(partial(_few, PingModel))]
Failures = Annotated[int, BeforeValidator(partial(parse_whole, least=1, most=1_000))]


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


class HooksModel(Document):
    """Notices of an operation; `alert_after` failures in a row raise one alert.

    Without `alert_after` the installation's number applies. Without `on_missed` its notices go to
    the receivers of `on_failure`.
    """

    ping: Pings = ()
    on_success: Hooks = ()
    on_failure: Hooks = ()
    on_missed: Hooks | None = None
    alert_after: Failures | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of each hook of first failures that hears of no failures."""
        return [
            line_error((key, number, "when"), FIRST, "belongs to on_failure; remove it here")
            for key in ("on_success", "on_missed")
            for number, hook in enumerate(_listed(raw.get(key)))
            if isinstance(hook, Mapping) and hook.get("when") == FIRST
        ]

    def at(self, moment: Moment | None) -> tuple[Target, ...]:
        """Return the targets that hear of each run at that moment, each once."""
        called = {Moment.SUCCESS: self.on_success, Moment.FAILURE: self.on_failure}
        its = () if moment is None else called.get(moment, ())
        pinged = [one.target for one in self.ping if moment in one.at]
        return tuple(dict.fromkeys((*_targets(its, EACH), *pinged)))

    @property
    def of_first_failures(self) -> tuple[Target, ...]:
        """The targets that hear of the first failure in a row, and of the recovery."""
        return _targets(self.on_failure, FIRST)

    @property
    def of_findings(self) -> tuple[Target, ...]:
        """The targets of alerts, and of what is overdue."""
        return _targets(self.on_failure, EACH)

    @property
    def of_missed(self) -> tuple[Target, ...]:
        """The targets of what was missed."""
        return self.of_findings if self.on_missed is None else _targets(self.on_missed)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of all its notices, each once."""
        told = _targets((*self.on_success, *self.on_failure, *(self.on_missed or ())))
        return tuple(dict.fromkeys((*told, *(one.target for one in self.ping))))


def _targets(hooks: Iterable[HookModel], when: str | None = None) -> tuple[Target, ...]:
    """Return the targets of these hooks, each once; `when` is what they have to say, None any."""
    return tuple(dict.fromkeys(one.target for one in hooks if when in {None, one.when}))
