"""Typed results of every command: actions, operations, small apps, the installation."""
