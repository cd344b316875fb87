"""Which recipes are there? What the rest of the system may ask of a model family, and a file for each."""
