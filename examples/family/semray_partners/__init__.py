"""The semray family partners: pairs of texts that mean the same, drawn together."""
