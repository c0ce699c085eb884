"""Python's search for garbage, which looks at all objects again and again."""

import gc

# So many new objects are looked at. Python's 700 take a tenth of a tick's time.
AFTER = 50_000


def keep_what_is_loaded() -> None:
    """Look for garbage in what is made from now on: what a long process has loaded stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(AFTER)
