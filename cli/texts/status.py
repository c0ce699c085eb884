"""The status of an installation, and what is paused, in words."""

from collections.abc import Iterator

from cli.render import listing
from models.store.actions.downtime import in_words
from models.values import counted
from models.values.durations import lasting
from services.daemon import Daemon
from services.doctor.disk import Disk
from services.doctor.disk import in_words as in_words_of_disk
from services.status import Status, Worker
from services.status.pauses import PauseChange, Pauses, Queues
from services.verdict import Verdict
from services.verdict.finding import OF_ACTIONS, Kind
from services.words import instant


def _status(found: Status) -> Iterator[str]:
    yield from _verdict(found.verdict)
    yield from _daemon(found)
    if found.downtime is not None:
        yield f"down        {in_words(found.downtime.model_dump())}"
    yield from _workers(found)
    counts = found.actions
    yield f"actions     {counts.total}, {counts.active} active, {counts.unhealthy} unhealthy"
    states = ", ".join(f"{count} {state}" for state, count in found.operations.items())
    yield f"last 24 h   {states or 'no runs'}"
    if found.disk is not None:
        yield from _disk(found.disk)
    for one in found.verdict.findings:
        if one.kind is Kind.QUARANTINED:
            yield f"QUARANTINED {one.text} ({one.uid})"


def _verdict(verdict: Verdict) -> Iterator[str]:
    """Yield the verdict, and each finding that is not about a single action."""
    yield f"{verdict.state.upper():<11} {verdict.sentence}"
    for one in verdict.findings:
        if one.kind not in OF_ACTIONS:
            since = "" if one.since is None else f" (since {instant(one.since)})"
            yield f"  {one.severity:<9} {one.text}{since}"
            yield f"            {one.remedy}"
            for each in one.consequences:
                yield f"            consequence: {each.text}"


def _disk(disk: Disk) -> Iterator[str]:
    yield f"disk        {in_words_of_disk(disk.total)} in the home folder, {disk.left_in_words}"
    if disk.is_nearly_full:
        yield "            NEARLY FULL; `minutebook doctor` shows what takes the space"


def _daemon(found: Status) -> Iterator[str]:
    daemon = found.daemon
    if daemon is None:
        yield "daemon      has never ticked; start it with `minutebook up`"
        return
    ago = lasting(found.now - daemon.last_tick_at)
    yield f"daemon      {_ticks(daemon)}: {daemon.name}, last tick {ago} ago"


def _ticks(daemon: Daemon) -> str:
    if daemon.stopped_at is not None:
        return f"stopped at {instant(daemon.stopped_at)}"
    return "ticks" if daemon.is_ticking else "DOES NOT TICK"


def _workers(found: Status) -> Iterator[str]:
    if not found.workers:
        yield "workers     none"
    for one in found.workers:
        yield from _worker(one)


def _worker(one: Worker) -> Iterator[str]:
    followed = "" if one.follows is None else f", follows {counted(len(one.follows), 'task')}"
    yield f"worker      {one.name} for {one.queues}{followed}"
    for module, error in (one.step_failures or {}).items():
        yield f"            module {module} failed to import: {error}"


def _change(one: PauseChange) -> Iterator[str]:
    waiting = counted(one.waiting, "run")
    if one.is_paused:
        end = "until it is resumed" if one.until is None else f"until {instant(one.until)}"
        yield f"{one.words} is paused {end}: what is due is recorded, and sent then"
        yield f"  {waiting} wait" if one.waiting != 1 else f"  {waiting} waits"
    elif one.was_paused:
        yield f"{one.words} is resumed; the next tick sends what waits: {waiting}"
    else:
        yield f"{one.words} is not paused; nothing was changed"


FORMS = {
    Status: _status,
    Pauses: listing("words=PAUSED since until by reason"),
    PauseChange: _change,
    Queues: listing("name=QUEUE waiting is_read is_paused until"),
}
