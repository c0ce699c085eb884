"""Every JSON of README, tutorial and how-to pages is what it is shown as."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action
from models.celery_task import CeleryRules
from models.tenant.document import parse_small_app
from models.users import parse_users
from services.jobs.documents import new_job
from tests.factories import STEPS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *(ROOT / "docs/how-to").rglob("*.md")]
BLOCKS: list[Any] = [
    pytest.param(json.loads(block), id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.S), 1
    )
]
CONTEXT = ParseContext(
    "Europe/Paris",
    datetime(2026, 11, 21, tzinfo=UTC),
    celery=CeleryRules(("tasks.*",)),
    steps=STEPS,
    channels=("ops", "pager"),
    # The tutorial lets the daemon tick so often.
    tick=timedelta(seconds=5),
    calendars={"french holidays": ["12-25"], "freeze": []},
)
DULL = {"name": "dull", "operations": {"maintenance": True}, "when": {"cron_rule": "@daily"}}


@pytest.mark.parametrize("document", BLOCKS)
def test_each_document_can_be_saved(document: Any) -> None:
    if isinstance(document, list) and "url" in document[0]:
        assert all(map(new_job, document))
    elif isinstance(document, list) and "operations" in document[0]:
        assert all(parse_action(one, CONTEXT) for one in document)
    elif isinstance(document, list):
        assert parse_users(document)
    elif "domains" in document:
        assert parse_small_app(document)
    elif set(document.get("operations", {})) <= set(STEPS):
        assert parse_action({**DULL, **document}, CONTEXT)
    else:
        assert document["operations"].keys() == {"count_files"}, "a step that a page registers"
