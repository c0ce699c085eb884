"""Move from other schedulers: their entries become actions, compared with their own engines.

A reader makes an `Entry` of each thing that another scheduler runs. `outcomes` decides what it
becomes here: the same, something different, or nothing.
"""
