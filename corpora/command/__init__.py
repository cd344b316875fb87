"""What a study of somebody's own script declares: the files it is made of, and the metrics it reports."""
