"""What is a study? The blocks of a study file as data, the runs it consists of, names and errors."""
