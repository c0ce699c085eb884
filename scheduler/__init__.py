"""When, and handing over: decide what is due, record it, send it."""
