"""Minutehand's actions in Django's admin: add `minutehand.django` to INSTALLED_APPS."""
