"""What a report calls the same is what Celery's own scheduler sends, for the shapes of users.

Each shape is exported and sent in an environment of its own release of Celery; actions are sent to
the same broker as the daemon sends them, and both messages are compared.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from broker.celery_rules import Application
from broker.errors import NoQueue
from broker.external_link import Link
from interop.beat_file import entries_of
from interop.celery_work import check_exchange
from interop.outcomes import Outcome, outcomes
from models.action.document import ParseContext, parse_action, plan_of
from models.store.operations.external_send import Handed
from runtime.clock import utc_now
from tasks.built_in import built_in_steps
from tests.packages.beat_shapes import taken
from tests.packages.environments import ROOT, make_environment, python_of
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker

HERE = Path(__file__).parent
# Texts of what differs from one message to the next, or only describes it.
ASIDE = {"id", "root_id", "origin", "argsrepr", "kwargsrepr"}
ASIDE |= {"expires", "ignore_result", "timelimit"}
OF_MINUTEBOOK = {"minutebook", "celery_beat_task"}
# Releases of Celery with their Python, what each shape differs in and what cannot move.
KNOWN = json.loads((HERE / "shapes.json").read_text(encoding="utf-8"))


@dataclass
class Shape:
    """What one application exported and sent, and what became of its entries."""

    name: str
    found: Mapping[str, Any]
    outcomes: list[Outcome]
    wrong: list[str] = field(default_factory=list)

    def named(self, kind: str) -> set[str]:
        return {one.name for one in self.outcomes if one.kind == kind}


def shapes_of(python: str, url: str, folder: Path) -> Iterator[Shape]:
    """Yield what a release of Celery exports and sends at a broker."""
    environment = {"PYTHONPATH": f"{ROOT}:{HERE}", "PATH": "/usr/bin:/bin", "TZ": "Europe/Paris"}
    command = [python, "-B", str(HERE / "beat_shapes.py"), url, str(folder)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for file in sorted(folder.glob("*.json")):
        found = json.loads(file.read_text())
        yield Shape(file.stem, found, list(_outcomes(found, is_amqp="amqp" in url)))


def _outcomes(found: Mapping[str, Any], *, is_amqp: bool) -> Iterator[Outcome]:
    now = utc_now()
    context = ParseContext("UTC", now, built_in_steps(), created_at=now, celery=None)
    entries = entries_of(found["exported"], "beat.json", now, found["options"])
    return outcomes((check_exchange(one, has_exchanges=is_amqp) for one in entries), context)


def compare(shape: Shape, url: str) -> None:
    """Add to what is wrong each entry that is the same and sends another message."""
    application = Application(url, dict(shape.found["options"]))
    link = Link(application)
    assert {one.name for one in shape.outcomes} >= set(shape.found["sent"])
    for one in shape.outcomes:
        theirs = shape.found["sent"].get(one.name, "is not sent at all")
        if one.kind != "same":
            continue
        if isinstance(theirs, str):
            shape.wrong.append(f"{one.name}: {theirs}")
            continue
        ours = sent_by_us(one, link, shape.found["queues"])
        own = shape.found["own"]
        pair = [
            [meaning(message, own) for message in sorted(messages, key=itemgetter("queue"))]
            for messages in (theirs, ours)
        ]
        if pair[0] != pair[1]:
            shape.wrong.append(f"{one.name}: {pair[0]} != {pair[1]}")
    link.connection.release()


def sent_by_us(one: Outcome, link: Link, queues: list[str]) -> list[dict[str, Any]]:
    """Send the task of an action as the daemon does; return what arrived where."""
    context = ParseContext("UTC", utc_now(), built_in_steps(), created_at=utc_now(), celery=None)
    plan = plan_of(parse_action(one.document, context))
    assert plan.hand_over is not None
    names = sorted({*queues, *([] if plan.hand_over.exchange else [plan.queue])})
    taken(link.connection, names)
    try:
        link.send(Handed(uuid4(), 1, plan.queue, plan.hand_over, {}))
    except NoQueue:
        return []
    return taken(link.connection, names)


def meaning(message: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    headers = message["headers"]
    expires = headers.get("expires")
    ignores = headers.get("ignore_result")
    its = own.get(headers["task"], {"ignore_result": False, "limits": [None, None]})
    left = datetime.fromisoformat(expires).timestamp() - message["at"] if expires else None
    return {
        **{name: message[name] for name in ("queue", "content_type", "priority", "delivery_mode")},
        "body": json.loads(message["body"]),
        "headers": {
            name: one
            for name, one in headers.items()
            # Releases of Celery have more headers or fewer, which say nothing.
            if name not in ASIDE | OF_MINUTEBOOK and one not in (None, 0, [], {})
        },
        "limits": [
            said or limit for said, limit in zip(headers["timelimit"], its["limits"], strict=True)
        ],
        "expires_s": left and round(left, -1),
        "ignores_result": its["ignore_result"] if ignores is None else bool(ignores),
    }


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with a release of Celery."""
    if request.param == "here":
        return sys.executable
    version, *libraries = KNOWN["releases"][request.param]
    made = make_environment(tmp_path_factory.mktemp("celery") / "env", python_of(version))
    made.install(*libraries, *KNOWN["beside"], is_offline=False)
    return str(made.bin / "python")


@pytest.mark.parametrize(
    "python",
    ["here", *(pytest.param(one, marks=pytest.mark.matrix) for one in KNOWN["releases"])],
    indirect=True,
)
@pytest.mark.parametrize("kind", ["redis", "rabbitmq"])
def test_what_is_the_same_is_what_celery_itself_sends(
    python: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Broker | RabbitMQ = request.getfixturevalue("broker" if kind == "redis" else kind)
    shapes = list(shapes_of(python, server.url, tmp_path))
    for shape in shapes:
        compare(shape, server.url)

    if (python, kind) == (sys.executable, "redis"):
        for outcome in ("differs", "cannot"):
            found = {one.name: sorted(one.named(outcome)) for one in shapes}
            assert {name: one for name, one in found.items() if one} == KNOWN[outcome]
    wrong = [f"{one.name}: {text}" for one in shapes for text in one.wrong]
    assert not wrong, "\n".join(wrong)
    assert sum(len(one.outcomes) for one in shapes) > 60
