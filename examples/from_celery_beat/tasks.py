"""The shop's own `tasks`, unchanged: nothing here refers to Minutebook."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from celery import shared_task

from models import write


@shared_task
def close_day(shop: str, tills: str | None = None) -> str:
    """Close a shop's day once the file of its tills exists."""
    write("close_day", shop, "begins")
    while tills is not None and not Path(tills).exists():
        Event().wait(0.1)
    write("close_day", shop, "ends")
    return f"{shop} is closed"


# Celery may begin it twice: counting does no harm.
@shared_task(acks_late=True, reject_on_worker_lost=True)
def count_stock(shop: str, list_: str | None = None) -> None:
    """Count a shop's stock once its list exists."""
    write("count_stock", shop, "begins")
    while list_ is not None and not Path(list_).exists():
        Event().wait(0.1)
    write("count_stock", shop, "ends")


@shared_task(bind=True, max_retries=3)
def order_more(self: Any, shop: str, fail: int = 0) -> None:
    """Order articles that are out of stock; the supplier does not answer the first `fail` times."""
    write("order_more", shop, f"try {self.request.retries + 1}")
    if self.request.retries < fail:
        raise self.retry(exc=ConnectionError("the supplier does not answer"), countdown=0)


@shared_task
def write_letter(shop: str) -> None:
    """Fail: there is no paper."""
    write("write_letter", shop, "begins")
    raise LookupError("no paper left")
