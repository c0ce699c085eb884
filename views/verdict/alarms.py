"""What is broken in an installation, and for how long: who is told of it, and when. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from models.stored import instant_in
from views.verdict.finding import Finding, Kind, Severity

# What the last tick said says nothing once no daemon ticks.
BY_TICKS = frozenset({Kind.BROKER_DOWN, Kind.OLDER_RELEASE})
# Seen only by the processes of one machine.
OF_MACHINE = frozenset({Kind.DISK})


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is broken since `since`; `is_told` once its notice is enqueued."""

    kind: str
    since: datetime
    text: str
    remedy: str
    # The machine that sees it; empty if all of them do.
    machine: str = ""
    is_told: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {**asdict(self), "since": self.since.isoformat()}


Alarms = Mapping[str, Alarm]


@dataclass(frozen=True, slots=True)
class Change:
    """The alarms after a look; those that begin to be told, and those that are over."""

    alarms: Alarms
    begun: tuple[Alarm, ...] = ()
    over: tuple[Alarm, ...] = ()


def alarms_in(document: Mapping[str, Any]) -> Alarms:
    """Return the stored alarms; one that cannot be read is left out."""
    found = {}
    for key, stored in document.items():
        since = instant_in(stored.get("since")) if isinstance(stored, dict) else None
        try:
            found[key] = Alarm(**{**stored, "since": since}) if since is not None else None
        except TypeError:
            continue
    return {key: alarm for key, alarm in found.items() if alarm is not None}


def changed(
    alarms: Alarms, findings: Iterable[Finding], machine: str, now: datetime, after: timedelta
) -> Change:
    """Return what a look at `now` changes; what is broken for longer than `after` is told."""
    seen = dict(_alarm(one, machine, now) for one in findings if one.severity is Severity.BROKEN)
    kinds = {alarm.kind for alarm in seen.values()}
    new = {key: alarms.get(key, alarm) for key, alarm in seen.items()}
    gone = {key: alarm for key, alarm in alarms.items() if key not in seen}
    unknown = {key: alarm for key, alarm in gone.items() if _is_hidden(alarm, kinds, machine)}
    due = {key: one for key, one in new.items() if not one.is_told and now - one.since > after}
    told = {key: replace(alarm, is_told=True) for key, alarm in due.items()}
    over = [alarm for key, alarm in gone.items() if key not in unknown and alarm.is_told]
    return Change({**unknown, **new, **told}, tuple(due.values()), tuple(over))


def _alarm(finding: Finding, machine: str, now: datetime) -> tuple[str, Alarm]:
    """Return the alarm of a finding and its key, which stays when its text counts further."""
    its_own = machine if finding.kind in OF_MACHINE else ""
    key = " | ".join((finding.kind, str(finding.uid or finding.remedy), its_own))
    since = min(finding.since or now, now)
    return key, Alarm(finding.kind, since, finding.text, finding.remedy, its_own)


def _is_hidden(alarm: Alarm, kinds: Collection[str], machine: str) -> bool:
    """Return whether a look cannot know whether an alarm is over."""
    is_elsewhere = alarm.machine not in {"", machine}
    return is_elsewhere or (alarm.kind in BY_TICKS and Kind.NO_DAEMON in kinds)
