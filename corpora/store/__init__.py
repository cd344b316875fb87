"""Shared by all corpora: the cache of built folders, columns on disk, row types, the error for people."""
