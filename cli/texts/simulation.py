"""A simulation in words."""

from collections.abc import Iterator
from datetime import timedelta

from models.values.zones import in_zone
from services.simulation import SimulatedFate, Simulation
from services.words import instant

LATE = timedelta(minutes=1)


def _simulation(found: Simulation) -> Iterator[str]:
    yield from map(_fate, found.fates)
    if found.left_out:
        yield f"… and {found.left_out} more; --limit shows them"
    yield from (f"note        {note}" for note in found.notes_of_rules)
    yield f"total       {', '.join(f'{count} {fate}' for fate, count in found.counts.items())}"
    yield from (f"busy        {instant(one.at)}: {one.sent} sent" for one in found.busiest)


def _fate(one: SimulatedFate) -> str:
    words = f"{in_zone(one.first_at, one.zone)} {one.zone}  {instant(one.first_at)}  {one.action}:"
    words += f" {one.fate}"
    if one.count > 1:
        words += f" {one.count} up to {instant(one.last_at)}"
    if one.fate == "sent" and one.decided_at - one.first_at >= LATE:
        words += f" at {instant(one.decided_at)}"
    return words + (f" ({one.reason})" if one.reason else "")


FORMS = {Simulation: _simulation}
