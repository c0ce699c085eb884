"""How large the house is: lines, files, importers, and how far four common ways lead through it."""
