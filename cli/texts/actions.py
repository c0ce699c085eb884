"""Actions in words."""

from cli.render import listing
from services.actions import Actions

COLUMNS = {
    "name": "NAME",
    "standing": "STATUS",
    "health": "HEALTH",
    "next_occurrence_at": "NEXT",
    "last_state": "LAST",
    "last_run_at": "LAST RUN",
    "uid": "UID",
}

FORMS = {Actions: listing(COLUMNS)}
