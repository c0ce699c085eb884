"""Where a domain's data come from: URLs, files, queries, readers."""
