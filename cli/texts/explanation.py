"""An explanation in words."""

from collections.abc import Iterator

from models.values.zones import in_zone
from services.explanation import Explanation
from services.words import instant


def _explanation(found: Explanation) -> Iterator[str]:
    local = f"{in_zone(found.instant, found.zone)} {found.zone}"
    yield f"{found.action} at {local} ({instant(found.instant)}): {found.verdict}"
    if found.text not in {one.text for one in found.operations}:
        yield f"  {found.text}"
    for one in found.operations:
        subject = f" for {one.subject}" if one.subject else ""
        yield f"  {one.triggerer}{subject}: {one.text}"
        yield f"  run {one.id}"


FORMS = {Explanation: _explanation}
