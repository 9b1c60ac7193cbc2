"""How agents learn: rollouts, returns, losses, replay, training."""
