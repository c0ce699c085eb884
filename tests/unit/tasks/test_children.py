import subprocess
import sys

import pytest

LOADED = "import sys, {module}; print(*sys.modules.keys() & {{'pydantic', 'sqlalchemy', 'celery'}})"


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("tasks.bounded.child", ""),
        ("tasks.children.command", ""),
        ("tasks.children.apprise_message", ""),
        ("data.children.templates", ""),
        ("data.children.query", "sqlalchemy"),
        ("data.importing", ""),
    ],
)
def test_a_child_loads_no_library_that_its_call_does_not_need(module: str, needed: str) -> None:
    command = [sys.executable, "-P", "-c", LOADED.format(module=module)]
    assert subprocess.check_output(command, text=True).strip() == needed
