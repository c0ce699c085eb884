"""What Minutebook's Celery workers run: operations, backfills and notices.

The names that the glossary lists are importable from here, as they are from `models`.
"""

from models import __all__ as __all__
from models import __getattr__ as __getattr__
