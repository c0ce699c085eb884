"""Applying documents: one summary, no query for each; a folder, --prune and filters by owner."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from models.store.actions.status import health_in, perhaps_unhealthy
from models.tables import action_cursor, actions
from runtime.clock import wait_for
from runtime.config import Settings
from scheduler.changes.change import create_all
from services import changes
from services.changes.result import JITTER_TO_COME
from services.upcoming import show
from tests.factories import author, installation_on, make_document, spoil
from tests.integration.cli.conftest import Call, Write
from tests.statements import executed
from tests.transactions import act, clock_of, execute

HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


def mails(number: int, **changes: Any) -> dict[str, Any]:
    """Return an action that names users, groups and a template, none of which is there."""
    recipients = {"users": [f"user{number}@example.com"], "groups": ["staff"]}
    steps = {"send_email": {"template": "hello"}}
    return make_document(
        name=f"mail {number}", operations=steps, recipients=recipients, when=HOURLY, **changes
    )


def test_the_number_of_statements_does_not_grow_with_the_actions(
    settings: Settings, engine: sa.Engine
) -> None:
    installation = installation_on(engine, settings)

    def statements(number: int) -> list[int]:
        """Count those that create so many actions, and those that apply them again."""
        documents, counted = [mails(n) for n in range(number, 2 * number)], []
        for _ in range(2):
            with executed(engine) as seen:
                made = changes.apply(installation, documents)
            assert len([one for one in made.root if one.warnings]) == number
            counted.append(len(seen))
        return counted

    few, many = statements(3), statements(60)

    assert all(more <= less for more, less in zip(many, few, strict=True))


@pytest.mark.parametrize("jitter_each", [False, True])
def test_times_have_no_jitter_before_the_action_has_its_own(
    call: Call, write: Write, *, jitter_each: bool
) -> None:
    path = write(make_document(when={**HOURLY, "jitter": "PT59M", "jitter_each": jitter_each}))
    span = ("--from", "2027-01-01T00:00Z", "--to", "2027-01-01T01:00Z")

    (new,) = call("action", "check", path, "--json").json
    tried = call("action", "apply", path, "--dry-run").out
    simulated = call("simulate", path, *span).out
    (stored,) = call("action", "add", path, "--json", "--verbose").json
    (again,) = call("action", "check", path, "--json").json

    assert {one["utc"][14:] for one in new["upcoming"]["next"]} == {"00:00Z"}
    assert all(one["utc"] in tried for one in new["upcoming"]["next"])
    assert new["warnings"] == [JITTER_TO_COME]
    assert JITTER_TO_COME in tried
    assert "its jitter is an example" in simulated
    assert again["upcoming"] == stored["upcoming"]
    assert (stored["warnings"], again["warnings"]) == ([], [])


def test_apply_prints_one_line_and_the_first_warnings(call: Call, write: Write) -> None:
    first = "\n".join(json.dumps(mails(n)) for n in range(40))
    second = "\n".join(json.dumps(mails(n, description="new")) for n in range(38, 42))
    call("action", "apply", write(first, "first.jsonl"))

    done = call("action", "apply", write(second, "second.jsonl"))

    lines = done.out.splitlines()
    assert lines[0] == "created 2, changed 2, unchanged 0"
    assert lines[1].startswith("  warning: mail 38: recipients.users")
    assert lines[-1] == "  … and 10 more warnings; --verbose shows them"
    assert (len(lines), done.err) == (12, "")


def test_a_date_that_passed_during_a_pause_is_said_at_resume_and_in_the_list(
    settings: Settings, engine: sa.Engine
) -> None:
    installation = installation_on(engine, settings)
    soon = clock_of(engine).replace(microsecond=0) + timedelta(seconds=2)
    once = make_document(name="once", when={"due_date": soon.isoformat()}, active=False)
    (stored,) = create_all(engine, [once], author())
    assert wait_for(lambda: clock_of(engine) > soon, 5)

    resumed = changes.resume(installation, "once")

    text = "no occurrence is to come; give it another date or rule"
    assert resumed.warnings == (text,)
    assert show(installation, "once").health == f"never ran, and {text}"
    # By what a tick writes then, the verdict finds it.
    its_own = sa.update(action_cursor).where(action_cursor.c.action_uid == stored.uid)
    execute(engine, its_own.values(next_occurrence_at=None))
    (found,) = act(engine, perhaps_unhealthy)
    assert health_in(found, 3).sentence == f"never ran, and {text}"


def test_many_actions_that_a_file_resumes_are_named(call: Call, write: Write) -> None:
    def named(**changes: object) -> str:
        made = [make_document(name=f"n{n}", **changes) for n in range(11)]
        return write("\n".join(map(json.dumps, made)), "many.jsonl")

    call("action", "add", named(active=False))
    done = call("action", "apply", named(active=True))

    assert done.out.splitlines()[:2] == ["resumed n0", "resumed n1"]
    assert done.out.splitlines()[-1] == "created 0, changed 11, unchanged 0"


Fill = Callable[..., str]


@pytest.fixture
def fill(tmp_path: Path, write: Callable[..., str]) -> Fill:
    """Write documents into a folder, each into the file of its name; return the folder."""
    folder = tmp_path / "actions"

    def fill(*names: str, **changes: Any) -> str:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            document = make_document(name=Path(name).name, **changes)
            write(document, str((folder / f"{name}.json").relative_to(tmp_path)))
        return str(folder)

    return fill


def owners(call: Call) -> dict[str, str | None]:
    return {one["name"]: one["owner"] for one in call("action", "list", "--json").json}


def test_a_link_that_is_not_read_deletes_no_action(call: Call, fill: Fill, tmp_path: Path) -> None:
    folder = fill("a", "team/b")
    call("action", "apply", folder, "--prune")
    Path(folder, "team").rename(tmp_path / "elsewhere")
    Path(folder, "team").symlink_to(tmp_path / "elsewhere")

    to_folder = call("action", "apply", folder, "--prune", "--yes")
    Path(folder, "team").unlink()
    Path(folder, "b.json").symlink_to(tmp_path / "gone.json")
    to_nothing = call("action", "apply", folder, "--prune", "--yes")

    assert to_folder.code == to_nothing.code == 2
    assert f"{folder}/team is a link to a folder, which is not read" in to_folder.err
    assert f"{folder}/b.json: cannot be read" in to_nothing.err
    assert set(owners(call)) == {"a", "b"}


@pytest.mark.parametrize(("answer", "left"), [("y", ["a"]), ("n", ["a", "b"])])
def test_on_a_terminal_it_asks(
    call: Call, fill: Fill, on_terminal: Call, answer: str, left: list[str]
) -> None:
    folder = fill("a", "b")
    call("action", "apply", folder, "--prune")
    Path(folder, "b.json").unlink()

    asked = on_terminal(answer, "action", "apply", folder, "--prune")

    assert "would delete b (" in asked.out
    assert "delete 1 action?" in asked.err
    assert list(owners(call)) == left


FAR = {"every": "PT1H", "starting_at": "2100-01-01T00:00:00Z"}


@pytest.fixture
def owned(call: Call, write: Write) -> None:
    documents = [
        make_document(name=name, owner=owner, when=FAR)
        for name, owner in [("in", "channel:42"), ("out", "channel:42"), ("other", "channel:4")]
    ]
    assert call("action", "add", write(documents)).code == 0


@pytest.mark.usefixtures("owned")
@pytest.mark.parametrize(
    ("verb", "did"), [("pause", "paused"), ("resume", "resumed"), ("delete", "deleted")]
)
def test_a_dry_run_says_which_actions_a_filter_admits_and_changes_none(
    call: Call, verb: str, did: str
) -> None:
    standing = "paused" if verb == "resume" else "active"
    call("action", "pause", "out" if verb == "resume" else "other")
    before = call("action", "list", "--json").json

    tried = call("action", verb, "--standing", standing, "--dry-run")
    alone = call("action", verb, "out", "--dry-run")

    assert tried.code == alone.code == 0
    assert tried.out == {
        "resume": "would resume 1 of 1 action\n  out\n",
    }.get(verb, f"would {verb} 2 of 2 actions\n  in\n  out\n")
    assert alone.out.startswith("would delete out" if verb == "delete" else "would change out")
    assert call("action", "list", "--json").json == before
    done = call("action", verb, "--standing", standing)
    assert done.out == tried.out.replace(f"would {verb}", did)


@pytest.mark.usefixtures("owned")
def test_an_action_that_cannot_be_resumed_does_not_stop_the_others(
    call: Call, stored: sa.Engine
) -> None:
    call("action", "pause", "--owner", "channel:42")
    wrong = json.dumps(
        make_document(name="in", owner="channel:42", when={"cron_rule": "61 * * * *"})
    )
    act(stored, spoil, actions.c.name == "in", document=wrong)

    resumed = call("action", "resume", "--owner", "channel:42")
    call("action", "delete", "out")
    alone = call("action", "resume", "--owner", "channel:42")

    assert (resumed.code, resumed.out) == (1, "resumed 1 of 2 actions\n  out\n")
    assert "minute '61' is above 59" in resumed.err
    assert (alone.code, alone.out) == (1, "resumed 0 of 1 action\n")
