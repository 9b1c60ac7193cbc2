"""Household rooms that can be built, walked through, opened, looked at and acted in."""
