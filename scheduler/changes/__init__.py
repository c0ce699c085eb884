"""Change actions: documents to revisions, deletion, what a change would do."""
