"""Make revisions of many documents; those that differ only in their names are validated once."""

import json
from dataclasses import replace
from typing import TypeAlias

from minutebook.steps import Steps
from models.action.document import DUE_DATE, ParseContext, document_hash
from models.values import composed, parse_name
from scheduler.changes.revisions import Revision, revision_of

# How many revisions are kept for documents like theirs; more would only take memory.
MOST_KEPT = 1_000

Likeness: TypeAlias = tuple[str, object]


class AlikeDocuments:
    """Makes revisions of the documents of one change, all by one author at one instant."""

    def __init__(self, author: str) -> None:
        self._author = author
        self._kept: dict[Likeness, Revision] = {}

    def revision_of(self, document: object, context: ParseContext) -> Revision:
        """Return the revision that `document` makes; raises InvalidAction with all problems."""
        named, likeness = _parted(document, context)
        alike = None if likeness is None else self._kept.get(likeness)
        if alike is not None and named is not None:
            return _with_name(alike, named, context.steps)
        revision = revision_of(document, context, self._author)
        if likeness is not None and len(self._kept) < MOST_KEPT:
            self._kept[likeness] = revision
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
    return (
        (None, None)
        if DUE_DATE in text
        else (
            name,
            (text, (context.created_at, context.is_paused)),
        )
    )


def _with_name(revision: Revision, name: str, steps: Steps) -> Revision:
    """Return the revision of the same document with another name."""
    document = {**json.loads(revision.columns["document"]), "name": name}
    columns = {
        **revision.columns,
        "name": name,
        "document": json.dumps(document, ensure_ascii=False),
        "document_hash": document_hash(document, steps),
    }
    model = revision.model.model_copy(update={"name": name})
    return replace(revision, model=model, columns=columns)
