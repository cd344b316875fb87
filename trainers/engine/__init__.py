"""The one training loop with its checkpoints, random streams, rates, and the world it runs in."""
