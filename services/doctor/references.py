"""Check that references to secrets can be read here."""

import re
from collections.abc import Iterable, Iterator

from models.references import is_reference
from runtime.config import Settings
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from runtime.sections import SecretSettings
from services.doctor.report import Checked, warning

_TARGET = re.compile(r'"(?:webhook|url)":"((?:env|file):(?:[^"\\]|\\.)+)"')
REMEDY = "set it where workers run; this is what the command sees in its own environment"


def references_in(plans: Iterable[str]) -> set[str]:
    """Return the references of the hooks of these plans."""
    return {found for plan in plans for found in _TARGET.findall(plan)}


def unresolved(
    references: Iterable[str], allowed: SecretSettings, prefix: str = ""
) -> Iterator[Checked]:
    """Yield a warning for each reference that cannot be read here; the secret is not shown."""
    for reference in sorted(set(references)):
        try:
            resolved(reference, allowed)
        except SecretMissing as error:
            yield warning("hooks", f"{prefix}{error}", REMEDY)


def unresolved_settings(settings: Settings) -> Iterator[Checked]:
    """Yield a warning for each setting whose secret cannot be read here."""
    values = {
        "SCHED_HOOK_SECRET": settings.hook.secret.get_secret_value(),
        "SCHED_ALERT_WEBHOOK": settings.alert.webhook.get_secret_value(),
    }
    for name, value in values.items():
        if is_reference(value):
            yield from unresolved([value], OF_SETTINGS, f"{name}: ")
