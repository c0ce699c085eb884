"""A server elsewhere, in place of an installation on this machine."""
