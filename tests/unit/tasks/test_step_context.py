from models.store.operations.heartbeat import RunHistory
from tasks.step_context import WorkContext


def context_of(*known: RunHistory) -> WorkContext:
    """Return a context that reads `known` one after the other."""
    made = object.__new__(WorkContext)
    made.memory_source = iter(known).__next__
    return made


def test_what_is_asked_for_later_is_of_the_same_reading() -> None:
    context = context_of(RunHistory(3, None, {"page": 7}), RunHistory(4, None, {"page": 8}))

    assert (context.run_number, context.checkpoint, context.last_success_at) == (
        4,
        {"page": 7},
        None,
    )


def test_a_checkpoint_that_no_step_asked_for_is_not_kept() -> None:
    context = context_of(RunHistory(3, None, {"page": 7}))
    assert context.run_number == 4

    assert not context.has_checkpoint


def test_a_checkpoint_that_a_step_set_stays() -> None:
    context = context_of(RunHistory(3, None, {"page": 7}))
    context.checkpoint = {"page": 9}

    assert (context.run_number, context.checkpoint) == (4, {"page": 9})
