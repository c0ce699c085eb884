"""Fuzzed documents: of actions and of small apps, as JSON and as YAML, and lists of users."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import process_time

from models.action.document import (
    ParseContext,
    document_hash,
    load_action,
    parse_action,
    plan_of,
    stored_document,
)
from models.errors import InvalidDocument
from models.json_text import read_json
from models.tenant.document import parse_small_app, stored_small_app
from models.trust import RESTRICTED
from models.users import parse_users
from runtime.documents import InvalidYaml, read_yaml
from tests.factories import STEPS

NOW = datetime(2026, 11, 23, 6, tzinfo=UTC)
CONTEXT = ParseContext("Europe/Paris", NOW, STEPS)
# Small inputs take milliseconds; what is quadratic or worse takes more.
MOST_CPU_S = 1.0
# A hundred problems of a path, a value and a remedy.
LONGEST_ERROR = 200_000


def check(given: bytes) -> None:
    """Read `given` as JSON and as YAML, and what it holds as each kind of document."""
    began = process_time()
    for document in _read(given):
        for one in document if isinstance(document, list) else [document]:
            _action(one)
            _small_app(one)
        with _refused():
            parse_users(document if isinstance(document, list) else [document], zone="Asia/Tokyo")
    took = process_time() - began
    assert took < MOST_CPU_S, f"{took:.1f} s of CPU"


def _read(given: bytes) -> Iterator[object]:
    with _refused():
        yield read_json(given)
    text = given.decode("utf-8", "replace")
    with suppress(InvalidYaml):
        yield read_yaml(text)


def _action(document: object) -> None:
    with _refused():
        parse_action(document, replace(CONTEXT, trust=RESTRICTED))
    with _refused():
        action = parse_action(document, CONTEXT)
        stored, plan = stored_document(action), plan_of(action)
        again = replace(CONTEXT, default_zone="UTC", created_at=NOW, kept_due_dates=None)
        for reread in (load_action(stored, steps=STEPS), parse_action(stored, again)):
            assert stored_document(reread) == stored
            assert plan_of(reread) == plan
        assert len(document_hash(stored, STEPS)) == 64
    with _refused():
        load_action(document, steps=STEPS, created_at=NOW)


def _small_app(document: object) -> None:
    with _refused():
        stored = stored_small_app(parse_small_app(document))
        assert stored_small_app(parse_small_app(stored)) == stored


@contextmanager
def _refused() -> Iterator[None]:
    """Let a document be refused, in bounds."""
    try:
        yield
    except InvalidDocument as error:
        assert 0 < len(str(error)) < LONGEST_ERROR, f"an error of {len(str(error))} characters"
