"""The commands: what they are given, and whom they ask to do it."""
