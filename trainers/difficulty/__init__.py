"""Training of difficulty-conditioned adapters on frozen embeddings, all arms and seeds as one stack."""
