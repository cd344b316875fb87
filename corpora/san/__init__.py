"""The corpus of the san family: sentences, their syntactically aligned negatives (SANs) and soft negatives."""
