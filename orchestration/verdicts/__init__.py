"""What does it say? From the ledger to findings, their evidence, and a passport that proves them."""
