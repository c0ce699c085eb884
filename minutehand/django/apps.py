"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig


class MinutehandConfig(AppConfig):
    """Actions of the server that MINUTEHAND_URL and MINUTEHAND_TOKEN name."""

    name = "minutehand.django"
    label = "minutehand"
    verbose_name = "Minutehand"
