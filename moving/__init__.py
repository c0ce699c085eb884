"""Move in from other schedulers: what they have becomes actions, compared with their own engines.

A reader makes an `Entry` of each thing that another scheduler runs, `outcomes` says what becomes of
it here: the same, different, or nothing.
"""
