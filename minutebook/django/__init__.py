"""Minutebook's actions in Django's admin: add `minutebook.django` to INSTALLED_APPS."""
