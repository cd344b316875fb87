"""Encoders as they are: nothing is trained."""
