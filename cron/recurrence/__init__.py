"""Recurrence rules of RFC 5545, from daily to yearly, by the clock on the wall."""

from cron.recurrence.minutes import RecurrentMinutes
from cron.recurrence.reading import MOST_TIMES, Recurrence, read_recurrence
from cron.recurrence.words import recurrence_in_words

__all__ = [
    "MOST_TIMES",
    "Recurrence",
    "RecurrentMinutes",
    "read_recurrence",
    "recurrence_in_words",
]
