"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig


class MinutebookConfig(AppConfig):
    """Actions of the server that MINUTEBOOK_URL and MINUTEBOOK_TOKEN name."""

    name = "minutebook.django"
    label = "minutebook"
    verbose_name = "Minutebook"
