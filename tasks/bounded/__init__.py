"""Child processes with limits of memory, CPU and time: a hostile input ends only its child.

`client` starts a process for each call. `child` is that process: it sets the limits and calls the
function. `limits` has the limits, and names the one that a child exceeded.
"""
