"""The data of a small app, templates of mails and the executive summary, in words."""

from collections.abc import Iterator

from cli.render import Line, listing, rows_of, sentence
from data.services.status import DataOfApp, DataStatus
from data.services.summary import SummaryPreview
from data.services.templates import TemplatePreview, Templates, TriedMail
from services.apps import App
from services.words import instant

DOMAINS = "name=DOMAIN staged_rows=STAGED refreshed_at published_rows=PUBLISHED published_at=AT"


def lines_of_app(app: App) -> Iterator[Line]:
    """Yield what is shown of a small app's data, nothing without a domain."""
    found = DataOfApp.of(app)
    if found.domains:
        yield f"data        {_data(found.data)}"
        yield rows_of(found.domains, DOMAINS)


def _data(data: DataStatus) -> str:
    words = [data.status]
    if data.phase:
        words.append(": ".join(filter(None, (data.phase, data.message))))
    if data.eta is not None:
        words.append(f"done by about {instant(data.eta)}")
    if data.is_longer_than_usual:
        words.append("longer than usual")
    if data.last_error:
        words.append(f"last error: {data.last_error}")
    return ", ".join(words)


def _preview(made: TemplatePreview, *, text_alone: bool = False) -> Iterator[str]:
    text = made.text.rstrip("\n").split("\n")
    if text_alone:
        yield from text
        return
    yield f"To: {made.to or 'no address: the user has none'}"
    yield f"Subject: {made.subject}"
    yield from ("", *text)
    if made.html is not None:
        yield from ("", f"HTML: {len(made.html):,} characters; --html prints them")


def _summary(made: SummaryPreview, *, text_alone: bool = False) -> Iterator[str]:
    if not text_alone:
        yield f"Action: {made.action or 'none sends it'}"
        yield from (f"Subject: {made.subject}", "")
    yield from made.text.rstrip("\n").split("\n")
    if not text_alone:
        yield from ("", f"HTML: {len(made.html):,} characters; --html prints them")


FORMS = {
    Templates: listing("name subject parts state"),
    TemplatePreview: _preview,
    TriedMail: sentence("{message}"),
    SummaryPreview: _summary,
}
