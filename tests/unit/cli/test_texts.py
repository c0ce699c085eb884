"""What the command line says of a view."""

from cli.texts.operations import step_lines


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
