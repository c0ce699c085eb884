"""Process set-up: settings, clocks, database engine, logs, embedded broker."""
