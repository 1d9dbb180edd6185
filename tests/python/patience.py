"""How long a test waits for a program that must end: it ends what hangs, and measures nothing."""

PATIENCE = 900  # seconds
