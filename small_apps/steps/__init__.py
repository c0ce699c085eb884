"""The built-in steps, one file each; steps do not import each other."""
