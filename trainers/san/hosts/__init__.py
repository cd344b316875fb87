"""One file a host: the terms of a step, from its rows; each plain and with aligned negatives."""
