"""What is nobody's choice in a study: the level that its claims share, and the power that advice aims at."""

ALPHA = 0.05
POWER = 0.80
