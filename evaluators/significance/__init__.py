"""From paired scores to a verdict: tests over seeds and items, corrections, power, words."""
