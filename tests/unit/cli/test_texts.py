"""What the command line says of a view."""

from types import SimpleNamespace

from cli.render import Table, listing, sentence, text_of
from cli.texts.operations import step_lines
from cli.texts.upcoming import described
from data.services.templates import TriedMail
from services.upcoming import Occurrences, Upcoming


def test_a_step_says_what_it_did_and_not_what_it_did_not() -> None:
    details = {
        "rewritten": ["orders", "stock"],
        "reused": [],
        "rows": {"orders": 2, "stock": 14},
        "design": {"published": [], "removed": []},
        "mail": {"sent": 1, "had_it": 0},
        "exit_code": 0,
    }
    step = {"name": "refresh", "state": "success", "message": "done", "details": details}

    assert list(step_lines(step)) == [
        "  step refresh: success",
        "    done",
        "    rewritten: orders, stock",
        "    rows: orders 2, stock 14",
        "    mail: sent 1, had_it 0",
        "    exit_code: 0",
    ]


def test_an_interval_from_the_end_is_not_said_to_be_over_while_it_runs() -> None:
    runs = Upcoming(when=("10 minutes after the last run ended",), zone="UTC", next=())

    from_end = runs.model_copy(update={"is_from_end": True})

    assert list(described(runs))[-1] == "  no occurrence to come"
    assert list(described(from_end))[-1] == "  nothing is due yet: a run has not ended"
    assert [*text_of(Occurrences(()), whole=from_end)] == [*described(from_end)][1:]


def test_a_sentence_says_the_fields_of_a_view() -> None:
    form = sentence("{template}: {message}")

    tried = TriedMail(template="hello", to="ann@example.com", message="sent 1 message")
    assert list(form(tried)) == ["hello: sent 1 message"]


def test_a_listing_has_the_column_of_apps_for_all_and_a_rare_one_if_it_says_something() -> None:
    form = listing("name", rare="priority")
    rows = [SimpleNamespace(app="shop", name="nightly", priority=0)]
    urgent = [*rows, SimpleNamespace(app="shop", name="hourly", priority=5)]

    assert list(form(SimpleNamespace(root=rows))) == [Table(["NAME"], [["nightly"]])]
    assert list(form(SimpleNamespace(root=urgent), all_apps=True)) == [
        Table(["APP", "NAME", "PRIORITY"], [["shop", "nightly", "0"], ["shop", "hourly", "5"]])
    ]
