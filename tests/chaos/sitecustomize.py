"""Loaded by Python itself at the start of each process of a storm, before anything of ours."""

from shifted import shift_this_process  # type: ignore[import-not-found]

shift_this_process()
