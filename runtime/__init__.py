"""How a process stands up: settings, clocks, database engine, logs, embedded broker."""
