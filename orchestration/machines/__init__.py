"""Is it well? What a machine or a cluster needs for a study."""
