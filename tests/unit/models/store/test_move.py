import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.errors import IllegalMove
from models.operation import LEGAL_MOVES, OperationState
from models.store.operations.transitions import move

ROOT = Path(__file__).parents[4]
ILLEGAL = [
    pytest.param(state, target, id=f"{state}-{target}")
    for state in OperationState
    for target in OperationState
    if target not in LEGAL_MOVES[state]
]


def written_by(call: ast.Call) -> Iterator[str]:
    """Yield the columns that `.values(…)` names."""
    yield from (keyword.arg for keyword in call.keywords if keyword.arg)
    for argument in call.args:
        if isinstance(argument, ast.Dict):
            yield from (str(key.value) for key in argument.keys if isinstance(key, ast.Constant))


def writes_of_state(file: Path) -> list[int]:
    """Return the lines of a file that write the state of operations by an update of their own."""
    return [
        call.lineno
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "values"
        and "update(operations)" in ast.unparse(call.func)
        and "state" in written_by(call)
    ]


def test_no_other_module_writes_the_state_of_an_operation() -> None:
    rooms = ("broker", "cli", "models", "processes", "scheduler", "data", "tasks", "services")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]

    assert {file: lines for file in files if (lines := writes_of_state(file))} == {}


def test_a_write_of_the_state_elsewhere_is_found(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text("sa.update(operations).where(x).values(\n    state='queued', reason=None)\n")

    assert writes_of_state(file) == [1]


@pytest.mark.parametrize(("state", "target"), ILLEGAL)
def test_an_illegal_move_is_no_statement(state: OperationState, target: OperationState) -> None:
    with pytest.raises(IllegalMove, match=f"from {state} to {target}"):
        move(target, since={state})
