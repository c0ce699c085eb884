"""What the independent checker of the storms says of the tables of an installation."""

from pathlib import Path

from tests.acceptance.installation import Installation
from tests.chaos import checker
from tests.chaos.facts import Facts, from_postgresql, from_sqlite
from tests.chaos.history import History

DECIDED = (
    checker.revisions_follow_each_other,
    checker.every_occurrence_has_one_outcome,
    checker.operations_lie_on_occurrences,
    checker.ids_are_as_documented,
)
# Neither a log of steps nor a journal of the storm: only the tables.
NO_LOG = Path("/nonexistent")


def violations(installation: Installation) -> list[str]:
    """Return each occurrence up to the last tick that has not exactly one outcome, and the like.

    Of actions with cron rules of minutes and hours in UTC, due dates and intervals.
    """
    history = History(_facts(installation))
    return [f"{rule.__name__}: {told}" for rule in DECIDED for told in rule(history)]


def _facts(installation: Installation) -> Facts:
    if installation.store == "sqlite":
        return from_sqlite(installation.home / "minutebook.db", NO_LOG, NO_LOG)
    return from_postgresql(installation.settings.database_url.get_secret_value(), NO_LOG, NO_LOG)
