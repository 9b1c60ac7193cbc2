"""The game of Cache: actions, stages, rewards, records, players."""
