"""Results as text: `cli/texts/X.py` formats those of `services/X.py`."""
