"""The HTTP door: it parses a request, calls one function of `services`, and returns its result."""
