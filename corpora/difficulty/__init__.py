"""The corpus of the difficulty family: sentence pairs with a graded similarity."""
