"""The corpus of the cale family: word occurrences of SemCor, their concepts, and pairs of them (SPCD)."""
