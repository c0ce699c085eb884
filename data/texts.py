"""Templates of mails and the executive summary, in words."""

from collections.abc import Iterator

from cli.render import listing, sentence
from data.views.summary import SummaryPreview
from data.views.templates import TemplatePreview, Templates, TriedMail, WrittenPart

COLUMNS = {"name": "NAME", "subject": "SUBJECT", "parts": "PARTS", "state": "STATE"}


def _preview(made: TemplatePreview, *, text_alone: bool = False) -> Iterator[str]:
    text = made.text.rstrip("\n").split("\n")
    if text_alone:
        yield from text
        return
    yield f"To: {made.to or 'no address: the user has none'}"
    yield f"Subject: {made.subject}"
    if made.list_unsubscribe:
        yield f"List-Unsubscribe: <{made.list_unsubscribe}>"
    yield from ("", *text)
    if made.html is not None:
        yield from ("", f"HTML: {len(made.html):,} characters; --html FILE writes them")


def _summary(made: SummaryPreview, *, text_alone: bool = False) -> Iterator[str]:
    if not text_alone:
        yield f"Action: {made.action or 'none sends it'}"
        yield from (f"Subject: {made.subject}", "")
    yield from made.text.rstrip("\n").split("\n")
    if not text_alone:
        yield from ("", f"HTML: {len(made.html):,} characters; --html FILE writes them")


FORMS = {
    Templates: listing(COLUMNS),
    TemplatePreview: _preview,
    TriedMail: sentence("{message}"),
    WrittenPart: sentence("wrote {characters:,} characters to {file}"),
    SummaryPreview: _summary,
}
