"""Texts of others in answers: half characters, and marks that reverse what a person reads."""

import json

from models.roles import Role
from tests.integration.web.conftest import APP, Web

JSON = {"Content-Type": "application/json"}
HALVES = (
    *(("subject", "{{ '\\ud800' }}"), ("text", "{{ '\\udc80' }}"), ("text", "\ud800")),
    ("html", "{{ app.name ~ '\\ud800' }}"),
)


def test_a_template_that_makes_half_a_character_is_refused(web: Web) -> None:
    editor = web.client(Role.EDITOR)

    for part, text in HALVES:
        templates = {"t": {"subject": "s", "text": "t", part: text}}
        document = json.dumps({"name": APP, "templates": templates})
        answer = editor.put(f"/api/apps/{APP}", content=document, headers={"If-Match": "*"})
        assert answer.status_code == 422, answer.text
        assert "templates.t" in answer.json()["detail"]

    assert editor.get(f"/api/apps/{APP}/templates").status_code == 200


def test_a_queue_that_cannot_be_printed_is_refused(web: Web) -> None:
    for text in ("\ud800", "a\u202eb", "a\nb"):
        given = json.dumps({"queues": [text]})
        answer = web.client().patch(f"/api/apps/{APP}/trust", content=given, headers=JSON)
        assert answer.status_code == 409, answer.text
        assert "write one that can be printed" in answer.json()["detail"]
