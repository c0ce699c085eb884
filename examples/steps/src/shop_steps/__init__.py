"""Steps of our shop, for Minutebook."""
