"""The data of a study of a user's script: the files it consists of, and the metrics it reports."""
