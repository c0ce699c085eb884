"""What views look like as text: `cli/texts/X.py` has a form for each view of `views/X.py`."""
