"""What would run? A study as runs, minus what the ledger holds, and what its seeds can show."""
