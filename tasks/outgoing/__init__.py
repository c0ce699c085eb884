"""What workers send to addresses that users wrote, other than over HTTP: mail."""
