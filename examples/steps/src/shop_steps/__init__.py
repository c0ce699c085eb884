"""Steps of our shop, for Minutehand."""
