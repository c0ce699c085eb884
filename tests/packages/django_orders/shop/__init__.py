"""An application of orders."""
