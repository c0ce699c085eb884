"""Make revisions of many documents; those that differ only in their names are validated once."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TypeAlias
from uuid import uuid4

from minutebook.steps import Steps
from models.action import DUE_DATE
from models.action.document import ParseContext, canonical, hash_of
from models.values import composed, parse_name
from scheduler.changes.revisions import Revision, revision_of

# How many revisions are kept for documents like theirs; more would only take memory.
MOST_KEPT = 1_000
# Keys of rules that begin with their action, unless the document says where.
BEGINNING = ("every", "rrule")
# Stands for the name where a text is parted; no document has it.
_NAME = uuid4().hex

Likeness: TypeAlias = tuple[str, object]


@dataclass(frozen=True, slots=True)
class _Parted:
    """A text with a name in it, in JSON."""

    before: str
    after: str
    written: Callable[[str], str]

    @classmethod
    def of(cls, text: str, written: Callable[[str], str]) -> "_Parted":
        """Return a text that has the name that stands for each; `written` is a name in JSON."""
        before, after = text.split(written(_NAME))
        return cls(before, after, written)

    def of_name(self, name: str) -> str:
        """Return the text with a name."""
        return self.before + self.written(name) + self.after


@dataclass(frozen=True, slots=True)
class _Kept:
    """A revision, and its texts for another name."""

    revision: Revision
    document: _Parted
    canonical: _Parted

    @classmethod
    def of(cls, revision: Revision, steps: Steps) -> "_Kept":
        """Return what is kept of a revision."""
        named = {**json.loads(revision.columns["document"]), "name": _NAME}
        text = json.dumps(named, ensure_ascii=False)
        return cls(
            revision,
            _Parted.of(text, encode_basestring),
            _Parted.of(canonical(named, steps), encode_basestring_ascii),
        )

    def with_name(self, name: str) -> Revision:
        """Return the revision of the same document with another name."""
        columns = {
            **self.revision.columns,
            "name": name,
            "document": self.document.of_name(name),
            "document_hash": hash_of(self.canonical.of_name(name)),
        }
        model = self.revision.model.model_copy(update={"name": name})
        return Revision(model, self.revision.plan, columns)


class AlikeDocuments:
    """Makes revisions of the documents of one change, all by one author at one instant."""

    def __init__(self, author: str) -> None:
        self._author = author
        self._kept: dict[Likeness, _Kept] = {}

    def revision_of(self, document: object, context: ParseContext) -> Revision:
        """Return the revision that `document` makes; raises InvalidAction with all problems."""
        named, likeness = _parted(document, context)
        alike = None if likeness is None else self._kept.get(likeness)
        if alike is not None and named is not None:
            return alike.with_name(named)
        revision = revision_of(document, context, self._author)
        if likeness is not None and len(self._kept) < MOST_KEPT:
            self._kept[likeness] = _Kept.of(revision, context.steps)
        return revision


def _parted(document: object, context: ParseContext) -> tuple[str, Likeness] | tuple[None, None]:
    """Return the name of a document, and all else that its revision depends on.

    Both are None for a document without a valid name, and for one with a due date: whether that may
    be past depends on the stored document.
    """
    if not isinstance(document, dict):
        return None, None
    try:
        name = composed(parse_name(document.get("name")))
        text = repr({key: value for key, value in document.items() if key != "name"})
    except (ValueError, RecursionError):
        return None, None
    if DUE_DATE in text:
        return None, None
    begins_at = context.created_at if any(key in text for key in BEGINNING) else None
    return name, (text, (begins_at, context.is_paused))
