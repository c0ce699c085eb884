"""Views as text: `cli/texts/X.py` formats each view of `views/X.py`."""
