"""`python -m minutebook export` in an application's environment."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from celery import Celery
from celery.beat import PersistentScheduler

from minutebook.__main__ import _writer
from tests.moved import export

SHOP = """
import atexit, ctypes, faulthandler, logging, multiprocessing, os, subprocess, sys, threading
from celery import Celery
{prints}
app = Celery("shop")
app.conf.beat_schedule = {{"café": {{"task": "tasks.it", "schedule": 60.0}}}}
"""
PRINTS = """
print('said')
sys.stdout.write('said\\n')
sys.__stdout__.write('said\\n')
os.write(1, b'said\\n')
open('/dev/stdout', 'w').write('said\\n')
ctypes.CDLL(None).puts(b'said')
subprocess.run(['echo', 'said'], check=True)
os.system('echo said')
os.fork() or (os.write(1, b'said\\n'), os._exit(0))
logging.basicConfig(stream=sys.stdout, level=20); logging.info('said')
threading.Thread(target=print, args=['said']).start()
kept = sys.stdout; atexit.register(lambda: kept.write('said\\n'))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP.format(prints="print('imported')"))
    return folder


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return export(folder, *arguments, LC_ALL="C", PATH="/usr/bin:/bin")


def test_what_an_application_prints_is_not_in_the_file(shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP.format(prints=PRINTS))
    done = run(shop)

    assert [one["name"] for one in json.loads(done.stdout)["entries"]] == ["café"]
    assert done.stderr.decode().count("said") == 12


def test_a_file_is_written_whole_beside_what_is_printed(shop: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "--workdir", str(shop), "-o", "beat.json")

    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads((tmp_path / "beat.json").read_bytes())["entries"][0]["name"] == "café"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["beat.json", "shop"]


def test_a_failed_run_leaves_the_last_file(shop: Path) -> None:
    (shop / "beat.json").write_text("last")
    (shop / "shop.py").write_text("raise LookupError('no settings')")
    done = run(shop, "-o", "beat.json")

    assert done.returncode == 1
    assert (shop / "beat.json").read_text() == "last"


def test_a_minute_that_is_drawn_at_random_is_the_same_each_time(shop: Path) -> None:
    code = (shop / "shop.py").read_text()
    drawn = "__import__('random').random() * 1_000 // 1 + 1"
    (shop / "shop.py").write_text(code.replace("60.0", drawn))
    first, second = (json.loads(run(shop).stdout)["entries"] for _ in range(2))

    assert first == second


def test_the_schedule_file_of_beat_says_when_an_entry_ran(shop: Path, tmp_path: Path) -> None:
    app = Celery("shop", set_as_current=False)
    app.conf.beat_schedule = {"café": {"task": "tasks.it", "schedule": 60.0}}
    file = tmp_path / "celerybeat-schedule"
    scheduler = PersistentScheduler(app, schedule_filename=str(file))
    scheduler.schedule["café"].last_run_at = datetime(2026, 11, 22, 14, 59, 7, tzinfo=UTC)
    scheduler.close()
    done = run(tmp_path, "--workdir", str(shop), "-s", "celerybeat-schedule")

    (only,) = json.loads(done.stdout)["entries"]
    assert only["last_run_at"] == "2026-11-22T14:59:07+00:00"


@pytest.mark.parametrize("content", [None, b"", b"no schedule"])
def test_another_file_than_that_of_beat_is_one_sentence(shop: Path, content: bytes | None) -> None:
    if content is not None:
        (shop / "schedule").write_bytes(content)
    done = run(shop, "-s", "schedule")

    assert (done.returncode, done.stdout) == (1, b"")
    error = [one for one in done.stderr.decode().splitlines() if one.startswith("error: ")]
    assert len(error) == 1
    assert "cannot be read" in error[0]


@pytest.mark.parametrize(
    ("arguments", "is_server_here", "writer"),
    [
        pytest.param(("export", "--help"), True, None, id="of_the_server"),
        pytest.param(("export", "-A", "shop", "--help"), True, "beat", id="of_an_application"),
        pytest.param(("export", "--help"), False, "beat", id="without_the_server"),
    ],
)
def test_export_is_of_an_application_if_it_names_one_or_there_is_no_server(
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    is_server_here: bool,
    writer: str | None,
) -> None:
    monkeypatch.setattr("minutebook.__main__.is_server_here", lambda: is_server_here)

    assert _writer(arguments) == writer
