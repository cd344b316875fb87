"""What is nobody's choice in a study: the level that its claims share, and the power that advice aims at."""

ALPHA = 0.05
POWER = 0.80


def places_of_p(p: float, least: int) -> int:
    """Decimals that a p is printed with: so many, and as many more as tell it from the level."""
    places = least
    while p != ALPHA and f"{p:.{places}f}" == f"{ALPHA:.{places}f}":
        places += 1
    return places
