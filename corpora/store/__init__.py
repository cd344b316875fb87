"""What every corpus stands on: a cache of built folders, columns on disk, row types, the error for people."""
