from pathlib import Path

import pytest

from runtime.config import InvalidSetting, load_settings


@pytest.mark.parametrize(
    ("variable", "wrong", "remedy", "right"),
    [
        ("SCHED_WORKER_QUICK", "x", "write a whole number", "3"),
        ("SCHED_WORKER_QUICK", "0", "write 1 or more", "1"),
        ("SCHED_WORKER_QUICK", "300", "write 256 or less", "256"),
        ("SCHED_FETCH_IMPORT_S", "0", "write a number above 0", "0.1"),
        ("SCHED_HOOK_ALLOW_PRIVATE", "maybe", "write true or false", "true"),
        ("SCHED_LOG_FORMAT", "xml", "write 'text' or 'json'", "json"),
        (
            "SCHED_CONNECTIONS",
            "[]",
            'write keys with their values, such as {"warehouse": "env:WAREHOUSE_URL"}',
            '{"warehouse": "env:WAREHOUSE_URL"}',
        ),
    ],
)
def test_the_remedy_for_a_variable_is_accepted(
    tmp_path: Path, variable: str, wrong: str, remedy: str, right: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {variable: wrong})

    assert str(refused.value).endswith(f": {remedy}")
    load_settings(tmp_path, {variable: right})


@pytest.mark.parametrize(
    ("wrong", "remedy", "right"),
    [
        ("worker: {quik: 3}", "worker.quik: is not a setting; remove it", "worker: {}"),
        ("worker: 3", "worker 3: is a section; write its keys below it", "worker: {quick: 3}"),
        ("data_root: 3", "data_root 3: write a path", "data_root: /srv/data"),
        (
            "step_modules: 3",
            "step_modules 3: write names, separated by commas",
            "step_modules: shop.steps, shop.more",
        ),
    ],
)
def test_the_remedy_for_the_file_is_accepted(
    tmp_path: Path, wrong: str, remedy: str, right: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(wrong)
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, {})

    assert str(refused.value) == f"{file}: {remedy}"
    file.write_text(right)
    load_settings(tmp_path, {})
