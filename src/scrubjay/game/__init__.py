"""The game of Cache: actions, stages, rewards, observations, records, metrics."""
