"""Run for long, by a simulated clock and by the real one, and look for what grows or is late."""
