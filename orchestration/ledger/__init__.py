"""What is finished? The durable record of runs, claims and drivers; the source of truth."""
