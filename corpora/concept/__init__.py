"""The corpus of the concept family: WordNet terms, masked definitions, hard negatives, held-out splits."""
