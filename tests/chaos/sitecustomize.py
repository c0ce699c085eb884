"""Python loads this at the start of each process of a storm, before our code."""

from shifted import shift_this_process  # type: ignore[import-not-found]

shift_this_process()
