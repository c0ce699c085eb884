import pytest

from cli.users import csv_rows
from models.users import InvalidUsers, parse_users

ANN = "ann@example.com"


def test_csv_is_read_and_empty_cells_are_absent() -> None:
    text = f'\ufeffid, name,groups,active\r\n{ANN},"Ann, A.", sales; managers ,TRUE\r\nbob,,,\r\n'

    assert csv_rows(text) == [
        {"id": ANN, "name": "Ann, A.", "groups": ["sales", "managers"], "active": "TRUE"},
        {"id": "bob", "groups": []},
    ]


def test_text_that_is_no_csv_is_refused() -> None:
    with pytest.raises(InvalidUsers) as refused:
        csv_rows('id\n"a')

    assert [problem.path for problem in refused.value.problems] == ["line 1"]


def test_cells_without_a_column_are_reported_with_their_row() -> None:
    with pytest.raises(InvalidUsers) as refused:
        parse_users(csv_rows(f"id,name\n{ANN},Ann,extra\n"))

    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["row 1.(cells beyond the last column)"]
