"""Mail: templates, messages, delivery and SMTP."""
