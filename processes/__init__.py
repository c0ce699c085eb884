"""How each process of ours stands up and goes down."""
