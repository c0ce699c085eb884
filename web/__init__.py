"""The HTTP door: it parses a request, calls one function of `views`, and returns its result."""
