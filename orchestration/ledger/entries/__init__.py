"""What one finished training, or one task's scores, leaves: its files, written once and read with suspicion."""
