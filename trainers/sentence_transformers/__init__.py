"""Recipes of sentence-transformers, trained by that library's own trainer."""
