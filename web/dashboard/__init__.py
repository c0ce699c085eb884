"""The dashboard: pages that show the typed results of the API, rendered on the server."""
