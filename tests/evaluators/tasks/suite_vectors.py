"""The frozen all-MiniLM-L6-v2 over the collection of published files, each text encoded once for all test modules."""
