"""The agent's networks: what it sees, remembers, imagines and decides."""
