from concurrent.futures import ThreadPoolExecutor
from threading import Event

from minutebook.steps import SmallApp
from services.installation import Installation
from web import cache
from web.cache import TtlCache

LONG_S = 60.0


class Making:
    """Makes its own number, from 1; the first one is made once it may end."""

    def __init__(self) -> None:
        self.scopes: list[int | None] = []
        self.is_asked, self.may_end = Event(), Event()

    def __call__(self, opened: Installation) -> int:
        self.scopes.append(opened.scope.small_app_id)
        number = len(self.scopes)
        if number == 1:
            self.is_asked.set()
            assert self.may_end.wait(LONG_S)
        return number


def seen_by(number: int) -> Installation:
    """Return an installation as the small app of this number sees it."""
    opened = Installation(is_bound=True)
    app = SmallApp(id=number, name=f"app{number}", zone="UTC")
    opened.__dict__["small_app"] = app
    return opened


def test_a_slow_read_of_one_scope_holds_up_no_other() -> None:
    making = Making()
    made = TtlCache(making)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(made.of, seen_by(1), LONG_S)
        assert making.is_asked.wait(LONG_S)
        quick = pool.submit(made.of, seen_by(2), LONG_S)
        try:
            assert quick.result(LONG_S) == 2
            assert not slow.done()
        finally:
            making.may_end.set()

        assert slow.result(LONG_S) == 1


def test_many_who_look_at_one_scope_at_once_make_it_once() -> None:
    making = Making()
    made = TtlCache(making)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(made.of, seen_by(1), LONG_S)
        assert making.is_asked.wait(LONG_S)
        others = [pool.submit(made.of, seen_by(1), LONG_S) for _ in range(2)]
        making.may_end.set()

        assert [one.result(LONG_S) for one in (first, *others)] == [1, 1, 1]


def test_what_was_being_made_before_a_change_is_not_shown_after_it() -> None:
    making = Making()
    made = TtlCache(making)
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(made.of, seen_by(1), LONG_S)
        assert making.is_asked.wait(LONG_S)
        made.forget()
        after = made.of(seen_by(1), LONG_S)
        making.may_end.set()
        before.result(LONG_S)

    assert (after, made.of(seen_by(1), LONG_S)) == (2, 2)


def test_the_scopes_that_were_looked_at_last_are_kept() -> None:
    making = Making()
    making.may_end.set()
    made = TtlCache(making)

    for number in range(cache.MOST + 1):
        made.of(seen_by(number), LONG_S)
        made.of(seen_by(1), LONG_S)
    made.of(seen_by(0), LONG_S)

    assert making.scopes == [*range(cache.MOST + 1), 0]
