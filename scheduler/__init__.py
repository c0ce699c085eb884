"""Decide what is due, record it and send it.

The names that the glossary lists are importable from here, as they are from `models`.
"""

from models import __all__ as __all__
from models import __getattr__ as __getattr__
