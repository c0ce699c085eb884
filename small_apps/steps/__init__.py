"""What the built-in steps do: one file each; steps do not know each other."""
