"""The version, as include/tiki/version.h has it (a test compares them)."""

__version__ = "0.1.0"
