"""The executive summary in words."""

from collections.abc import Iterator

from views.summary import SummaryPreview


def _preview(made: SummaryPreview, *, text_alone: bool = False) -> Iterator[str]:
    if not text_alone:
        yield f"Action: {made.action or 'none sends it'}"
        yield from (f"Subject: {made.subject}", "")
    yield from made.text.rstrip("\n").split("\n")
    if not text_alone:
        yield from ("", f"HTML: {len(made.html):,} characters; --html FILE writes them")


FORMS = {SummaryPreview: _preview}
