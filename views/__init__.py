"""What is shown of an action, an operation, an app and the installation: typed results."""
