"""A message from its template to SMTP."""
