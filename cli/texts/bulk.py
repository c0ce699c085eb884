"""What is done to many operations, in words."""

from collections.abc import Iterator

from scheduler.on_demand.many import ManyVerb
from views.bulk import Bulk, left_out_in_words
from views.words import instant

# What was done, and what would be.
WORDS = {
    ManyVerb.RETRY: ("retried", "retry"),
    ManyVerb.RERUN: ("ran", "run"),
    ManyVerb.CANCEL: ("cancelled", "cancel"),
}
MOST_ACTIONS = 20


def _bulk(done: Bulk) -> Iterator[str]:
    did, would = WORDS[done.verb]
    noun = "operation" if done.count == 1 else "operations"
    if done.dry_run:
        yield f"would {would} {done.count:,} {noun}; nothing was changed"
    else:
        yield f"{did} {done.count:,} {noun}"
    for one in done.actions[:MOST_ACTIONS]:
        yield f"  {one.count:>5,} of {one.name} ({one.app})"
    if done.actions[MOST_ACTIONS:]:
        yield f"  and of {len(done.actions) - MOST_ACTIONS:,} more actions"
    for first in done.first if done.dry_run else ():
        yield f"  {first.id} {first.action} {instant(first.occurrence_at)} {first.state}"
    if done.dry_run and done.count > len(done.first):
        yield f"  and {done.count - len(done.first):,} more"
    if done.dry_run:
        yield from (f"  {left_out_in_words(one)}" for one in done.left_out)


FORMS = {Bulk: _bulk}
