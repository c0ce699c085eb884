"""One mail on its way: the message, its bytes, and the server or the folder that takes it."""
