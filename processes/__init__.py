"""The start and stop of each of Minutehand's processes."""
