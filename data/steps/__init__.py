"""The steps of the data product, a folder each: `__init__.py` declares one, `work.py` does it.

Declarations are light, so that each process can read them; the work is imported when a step runs.
Steps do not import each other.
"""

from data.steps import publish, refresh, send_email, send_execsum

__all__ = ["publish", "refresh", "send_email", "send_execsum"]
