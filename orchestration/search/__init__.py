"""Which settings? Points of a search space, raced over selection seeds, and their confirmation."""
