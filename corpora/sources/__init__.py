"""Published lexicons and texts as typed records: WordNet, SemCor, English word lists, words in sentences."""
