"""Which finding explains which: a cause stands first, its consequences are folded under it. Pure.

Two that must both be mended do not explain each other: no worker, and a broker that is down.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from models.values import counted
from models.worker_kinds import HTTP, OURS
from services.verdict.finding import Consequence, Finding, Kind, Severity

# Whether a cause explains a finding of one of its kinds.
Holds = Callable[[Finding, Finding], bool]
_WAITS = frozenset({Kind.QUEUE_BEHIND, Kind.ACTION_OVERDUE})
# What follows where nothing can be written, or a clock is wrong.
_STOPS = _WAITS | {
    *(Kind.NO_DAEMON, Kind.NO_WORKER, Kind.WORKERS_LOST, Kind.LOCKED, Kind.NOTICE_REFUSED),
    *(Kind.ACTION_MISSED, Kind.NEVER_RAN),
}
# Several of these are one consequence.
_OF_MANY_ACTIONS: Mapping[Kind, str] = {
    Kind.ACTION_OVERDUE: "are overdue",
    Kind.ACTION_MISSED: "missed occurrences",
    Kind.NEVER_RAN: "never ran",
}


def _stops(cause: Finding, effect: Finding) -> bool:
    """Whether the cause is bad enough; what was missed before it has another reason."""
    is_past = effect.kind is Kind.ACTION_MISSED
    is_later = bool(effect.since and cause.since and effect.since >= cause.since)
    return cause.severity is Severity.BROKEN and (is_later or not is_past)


def _is_ours(_: Finding, effect: Finding) -> bool:
    return (effect.queue or "").startswith(OURS.prefix) and _is_sent(effect)


def _is_of_application(_: Finding, effect: Finding) -> bool:
    return bool(effect.queue) and not str(effect.queue).startswith(OURS.prefix)


def _is_sent(effect: Finding) -> bool:
    """Whether the broker's messages lead to it: the work of jobs is taken over HTTP."""
    return not (effect.queue or "").startswith(HTTP.prefix)


def _is_paused(cause: Finding, effect: Finding) -> bool:
    covers_queue = cause.queue in {None, effect.queue}
    return covers_queue and cause.app in {None, effect.app}


def _same_queue(cause: Finding, effect: Finding) -> bool:
    if effect.kind is Kind.WORKERS_LOST:
        return _is_of_application(effect, cause)
    return cause.queue == effect.queue


def _always(_cause: Finding, _effect: Finding) -> bool:
    return True


# The first that explains a finding is its cause; a cause may follow from an earlier one.
_RULES: Mapping[Kind, tuple[frozenset[Kind], Holds]] = {
    Kind.CLOCK: (_STOPS, _stops),
    Kind.DISK: (_STOPS | {Kind.READ_ONLY, Kind.BROKER_DOWN}, _stops),
    Kind.READ_ONLY: (_STOPS, _stops),
    Kind.BROKER_DOWN: (_WAITS, _is_ours),
    Kind.APPLICATION_BROKER_DOWN: (_WAITS, _is_of_application),
    Kind.PAUSED: (_WAITS, _is_paused),
    Kind.NO_WORKER: (frozenset({Kind.ACTION_OVERDUE, Kind.WORKERS_LOST}), _same_queue),
    Kind.QUEUE_BEHIND: (frozenset({Kind.ACTION_OVERDUE}), _same_queue),
    Kind.NO_DAEMON: (frozenset({Kind.ACTION_OVERDUE}), _always),
}


def folded(findings: Sequence[Finding], *, has_one_broker: bool) -> list[Finding]:
    """Return the findings that no other one explains, each with its consequences.

    `has_one_broker`: the Celery application shares the broker of our own queues.
    """
    rules = dict(_RULES)
    if has_one_broker:
        rules[Kind.BROKER_DOWN] = (_WAITS, lambda _, effect: _is_sent(effect))
    order = list(rules)
    causes = sorted((one for one in findings if one.kind in rules), key=_place_in(order))
    roots: list[Finding] = []
    below: dict[int, list[Finding]] = defaultdict(list)
    for one in findings:
        root = one
        while (cause := _cause_of(root, causes, rules)) is not None:
            root = cause
        (roots if root is one else below[id(root)]).append(one)
    return [_with(one, below[id(one)]) if id(one) in below else one for one in roots]


def _with(cause: Finding, found: Sequence[Finding]) -> Finding:
    return cause.model_copy(update={"consequences": tuple(_consequences(found))})


def _place_in(order: Sequence[Kind]) -> Callable[[Finding], int]:
    return lambda one: order.index(one.kind)


def _cause_of(
    effect: Finding,
    causes: Sequence[Finding],
    rules: Mapping[Kind, tuple[frozenset[Kind], Holds]],
) -> Finding | None:
    for one in causes:
        kinds, holds = rules[one.kind]
        if effect.kind in kinds and holds(one, effect):
            return one
    return None


def _consequences(found: Sequence[Finding]) -> Iterator[Consequence]:
    """Yield what follows from a cause: each finding, or how many actions there are of a kind."""
    counts = Counter(one.kind for one in found)
    is_given = set()
    for one in found:
        count = counts[one.kind] if one.kind in _OF_MANY_ACTIONS else 1
        if count > 1 and one.kind in is_given:
            continue
        is_given.add(one.kind)
        many = f"{counted(count, 'action')} {_OF_MANY_ACTIONS.get(one.kind)}"
        text = one.text if count == 1 else many
        yield Consequence(kind=one.kind, severity=one.severity, count=count, text=text)
