"""Words and their definitions: from dictionaries, split by word, to teach a sentence encoder the word."""
