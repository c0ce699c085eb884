"""docs/reference/settings: every setting, its variable, its place in the file, its default."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from runtime.config import load_settings, setting_paths, settings_model
from runtime.sections import Section
from runtime.sections.variables import NO_SETTINGS, PREFIX, named_settings, variable_of
from tests.docs.pages import pages_of, text_of

TEXT = text_of("reference/settings")
INDEX = pages_of("reference/settings")[0].read_text(encoding="utf-8")
ROWS = {
    variable: (key, default, meaning)
    for variable, key, default, meaning in re.findall(
        r"^\| `(SCHED_\w+)` \| `([\w.]+)` \| (.+?) \| (.+?) \|$", TEXT, re.M
    )
}
PATHS = [pytest.param(path, id=".".join(path)) for path in setting_paths()]


def _default(path: tuple[str, ...]) -> Any:
    kind: type[Section] = settings_model()
    for name in path[:-1]:
        annotation = kind.model_fields[name].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, Section)
        kind = annotation
    return kind.model_fields[path[-1]].default


@pytest.mark.parametrize("path", PATHS)
def test_each_default_is_the_true_one(path: tuple[str, ...]) -> None:
    key, shown, meaning = ROWS[variable_of(path)]
    default = _default(path)

    assert (".".join(path), bool(meaning)) == (key, True)

    # A long expression is said in words too.
    if default is None or isinstance(default, SecretStr | Path | tuple) or path[-1] == "hide":
        assert not shown.startswith("`SCHED"), "what is taken when nothing is set is said in words"
    else:
        assert shown == f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_the_pages_name_no_other_variable() -> None:
    named = {f"{variable_of(path)}_NAME" for path in named_settings()}
    known = {variable_of(path) for path in setting_paths()} | set(NO_SETTINGS) | named
    written = set(re.findall(rf"{PREFIX}\w+", TEXT))

    assert written - known == set()


def test_the_index_leads_to_each_setting() -> None:
    rows = re.findall(r"^\| `(SCHED_\w+)` \| \[`([\w.]+)`\]\(([\w-]+)\.md", INDEX, re.M)

    assert [variable for variable, _, _ in rows] == sorted(ROWS)
    for variable, key, page in rows:
        assert f"\n| `{variable}` | `{key}` |" in text_of(f"reference/settings/{page}")


def test_the_quoted_refusal_is_the_real_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SCHED_WORKER_LEASE_S") as refusal:
        load_settings(tmp_path, {"SCHED_WORKER_LEASE_S": "5"})

    assert f"error: {refusal.value}" in TEXT


def test_a_file_says_the_same_as_a_variable(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", TEXT, re.S)
    assert block is not None
    (tmp_path / "config.yaml").write_text(block[1])

    assert (
        load_settings(tmp_path, {}).worker
        == load_settings(tmp_path / "empty", {"SCHED_WORKER_QUICK": "4"}).worker
    )
