"""Why the broker has not taken a message yet."""

from broker.sending import Sent
from views.installation import Installation


def why_unsent(installation: Installation, sent: Sent) -> str | None:
    """Return why messages were not sent yet, None if they were."""
    if sent.error is None:
        return None
    is_ours = installation.settings.uses_embedded_broker
    hint = "; is `minutehand up` running?" if is_ours else ""
    return f"broker unavailable; the daemon sends it later{hint}"
