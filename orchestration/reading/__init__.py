"""Is this file a study? Every mistake of a YAML file, named by file, line, field and value."""
