"""The report of doctor in words."""

from collections.abc import Iterator

from services.doctor.report import Report
from services.words import instant


def _report(report: Report) -> Iterator[str]:
    for one in report.root:
        since = "" if one.since is None else f" (since {instant(one.since)})"
        yield f"{one.level:<8} {one.what:<11} {one.text}{since}"
        if one.remedy is not None:
            yield f"{'':<20} {one.remedy}"
        for text in one.consequences:
            yield f"{'':<20} consequence: {text}"


FORMS = {Report: _report}
