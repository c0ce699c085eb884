"""Log once when this machine's clock is off, once when it is right again, and when it was set."""

from dataclasses import dataclass

from runtime.logs.events import EventLog

logger = EventLog("minutebook.clock")
# A machine's clock that differs more from the database's is off.
MAX_SKEW_S = 2.0


@dataclass
class SkewWatch:
    """The skew of this machine's clock."""

    skew_s: float = 0.0
    is_off: bool = False
    # The wall clock minus the monotonic clock.
    _leads_s: float | None = None

    def note(self, skew_s: float) -> None:
        """Record how many seconds the machine's clock is ahead of the database's."""
        was_off, self.skew_s = self.is_off, skew_s
        self.is_off = abs(skew_s) > MAX_SKEW_S
        if self.is_off and not was_off:
            logger.warning(
                "clock_skewed",
                "this machine's clock is {seconds:+.1f} s off the database's, which "
                "alone decides; set it right (NTP)",
                skew_s,
            )
        elif was_off and not self.is_off:
            logger.info("clock_right_again", "this machine's clock is right again")

    def note_wall(self, wall_s: float, monotonic_s: float) -> None:
        """Record the wall clock and the monotonic clock, read at the same moment."""
        before, self._leads_s = self._leads_s, wall_s - monotonic_s
        if before is not None and abs(self._leads_s - before) > MAX_SKEW_S:
            logger.warning(
                "machine_clock_set",
                "this machine's clock was set by {seconds:+.1f} s",
                self._leads_s - before,
            )
