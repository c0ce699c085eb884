from celery.app.task import Context

from minutebook.discarded import headers_of, ours

OURS = {"id": "7", "attempt": 1}


def test_a_header_is_found_where_celery_5_2_keeps_it() -> None:
    request = Context(id="7", minutebook=OURS)
    request.headers = None

    assert ours(headers_of(request), "7") == OURS


def test_a_header_that_was_set_for_the_next_attempt_goes_first() -> None:
    later = {**OURS, "attempt": 2}
    request = Context(id="7", minutebook=OURS, headers={"minutebook": later, "trace": "x"})

    assert headers_of(request) == {"minutebook": later, "trace": "x"}


def test_a_message_of_somebody_else_has_none() -> None:
    assert headers_of(Context(id="7")) == {}
