"""The report of doctor in words."""

from collections.abc import Iterator

from services.doctor.report import Report


def _report(report: Report) -> Iterator[str]:
    for one in report.root:
        yield f"{one.level:<8} {one.what:<11} {one.text}"
        if one.remedy is not None:
            yield f"{'':<20} {one.remedy}"


FORMS = {Report: _report}
