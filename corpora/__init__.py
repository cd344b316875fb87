"""Text in, typed rows out: lexicons, pair builders, negatives and splits."""
