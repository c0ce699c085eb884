"""Child processes with limits of memory, CPU and time: a hostile input ends only its child.

`client` starts one server for each process, and asks it for a child. `server` forks the children,
so that none pays for the imports. `child` sets the limits and calls the function. `limits` has the
limits, and names the one that a child exceeded.
"""
