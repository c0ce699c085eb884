import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from minutebook import lease
from minutebook.lease import CANCELLED, LOST, TIME_LIMIT, Interrupted, Keeper, Limits

LIMITS = Limits(60.0, 30.0, 30.0, 10.0, 30.0)
AT_ONCE = Limits(60.0, 0.0, 0.0, 10.0, 30.0)
LONG_S = 20.0


class Kept(Keeper):
    """A keeper whose heartbeat learns what it is told."""

    def __init__(self, limits: Limits = LIMITS, learns: str | None = None) -> None:
        super().__init__(limits)
        self.learns = learns
        self.news = threading.Event()
        self.was_cut_off: list[str] = []
        self.cut = threading.Event()

    def beat(self) -> float:
        self.news.clear()
        self.asked = self.learns
        return self.limits.heartbeat_s

    def news_due_at(self) -> float | None:
        return 0.0 if self.news.is_set() else None

    def cut_off(self, why: str) -> None:
        self.was_cut_off.append(why)
        self.cut.set()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "CHECK_S", 0.005)
    monkeypatch.setattr(lease, "NEWS_SOON_S", 0.0)


def in_another(act: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result()


def works(seconds: float = LONG_S) -> None:
    """Work in short pieces, as an interruption of another thread needs."""
    never = threading.Event()
    for _ in range(int(seconds / 0.005)):
        never.wait(0.005)


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["in_main", "in_another"])
@pytest.mark.parametrize("why", [CANCELLED, LOST])
def test_work_that_must_end_is_interrupted(is_elsewhere: bool, why: str) -> None:
    kept = Kept(learns=why)
    kept.news.set()

    def act() -> None:
        with kept.held(), kept.interruptible():
            works()

    with pytest.raises(Interrupted):
        in_another(act) if is_elsewhere else act()

    assert (kept.interrupted_for, kept.was_cut_off) == (why, [])


def test_work_beyond_its_time_limit_is_interrupted_after_the_soft_limit() -> None:
    kept = Kept(Limits(0.0, 30.0, 30.0, 0.0, 30.0))

    with pytest.raises(Interrupted), kept.held(), kept.interruptible():
        works()

    assert kept.interrupted_for == TIME_LIMIT


def test_work_that_goes_on_is_cut_off_once() -> None:
    kept = Kept(AT_ONCE, learns=CANCELLED)

    with kept.held():
        assert kept.cut.wait(LONG_S)

    assert kept.was_cut_off == [CANCELLED]


def test_work_that_begins_after_the_interruption_does_not_begin() -> None:
    kept = Kept(Limits(60.0, 0.0, 30.0, 10.0, 30.0), learns=CANCELLED)
    begun: list[int] = []

    def act() -> None:
        with kept.held():
            while kept.interrupted_for is None:
                works(0.005)
            with kept.interruptible():
                begun.append(1)

    with pytest.raises(Interrupted):
        act()

    assert begun == []


def test_what_runs_after_the_work_is_not_hit() -> None:
    kept = Kept(learns=CANCELLED)

    def act() -> None:
        with kept.held():
            with kept.interruptible():
                pass
            kept.news.set()
            while kept.interrupted_for is None:
                works(0.005)

    in_another(act)


@pytest.mark.parametrize(
    ("ran_s", "asked", "why"),
    [
        pytest.param(59.0, None, None, id="in_time"),
        pytest.param(60.0, None, TIME_LIMIT, id="at_the_limit"),
        pytest.param(70.0, CANCELLED, CANCELLED, id="cancelled"),
    ],
)
def test_work_should_stop_as_it_was_asked_or_at_its_time_limit(
    ran_s: float, asked: str | None, why: str | None
) -> None:
    assert LIMITS.why_stop(ran_s, asked) == why


@pytest.mark.parametrize(
    ("ran_s", "cancelled_s", "left_s"),
    [
        pytest.param(10.0, None, 60.0, id="until_the_soft_limit"),
        pytest.param(10.0, 5.0, 25.0, id="until_the_grace_ends"),
        pytest.param(65.0, 5.0, 5.0, id="whichever_comes_first"),
        pytest.param(10.0, 40.0, 0.0, id="never_negative"),
    ],
)
def test_work_that_cannot_be_interrupted_ends_at_the_soft_limit_or_the_grace(
    ran_s: float, cancelled_s: float | None, left_s: float
) -> None:
    assert LIMITS.left_s(ran_s, cancelled_s) == left_s


def test_work_whose_thread_cannot_start_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    began = False

    with pytest.raises(RuntimeError), Kept().held():
        began = True

    assert not began
