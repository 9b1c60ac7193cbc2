"""Scrubjay: agents that learn to see by hiding and finding things."""

__version__ = "0.1.0"
