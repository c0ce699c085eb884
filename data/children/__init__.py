"""What runs in child processes alone. Each module loads as little as its one call needs."""
