"""Measurements: every claim of speed has a command here."""
