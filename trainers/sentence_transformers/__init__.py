"""Recipes as users of sentence-transformers write them, through that library's own trainer."""
