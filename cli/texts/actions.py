"""Actions in words."""

from cli.render import listing
from services.actions import Actions

COLUMNS = (
    "name standing=STATUS health next_occurrence_at=NEXT last_state=LAST last_run_at=LAST_RUN uid"
)

FORMS = {Actions: listing(COLUMNS)}
