"""Modules of steps: what stops one from being loaded."""

from pathlib import Path

import pytest

from tasks.registry import Registry


@pytest.mark.parametrize(
    "module", ["models", "tasks", "models.action.steps", "models.absent", "cron"]
)
def test_a_module_named_as_one_of_ours_is_told_and_not_taken_for_it(module: str) -> None:
    failed = Registry((module,)).failed

    assert "of its own; give yours another name" in failed[module]
    assert repr(module.partition(".")[0]) in failed[module]


def test_a_module_of_a_users_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_steps_here.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    registry = Registry(("shop_steps_here", "shop_steps_absent"))

    assert list(registry.failed) == ["shop_steps_absent"]
