import hashlib

from hypothesis import given
from hypothesis import strategies as st

from corpora.sources.texts import keyed, norm, normdef, word_count


def test_norm_folds_case_gaps_and_composition() -> None:
    assert norm("Mother-in-Law ") == norm("mother_in  law") == "mother in law"
    assert norm("cafe\u0301") == "caf\u00e9"


def test_normdef_keeps_letters_and_digits_only() -> None:
    assert normdef("(of water) Frozen; at 0° C.") == "of water frozen at 0 c"


def test_words_are_letters_with_one_apostrophe_tail() -> None:
    assert word_count("a dog's life, 3 times") == 4


@given(st.text())
def test_norms_are_idempotent(text: str) -> None:
    assert norm(norm(text)) == norm(text)
    assert normdef(normdef(text)) == normdef(text)


@given(st.text(alphabet="abCD", min_size=1), st.sampled_from([" ", "_", "-", " _-"]))
def test_gaps_stand_for_one_another(word: str, gap: str) -> None:
    assert norm(f"{word}{gap}{word}") == norm(f"{word} {word}")


def test_keyed_is_blake2b_of_the_parts() -> None:
    """The eight bytes of blake2b("0|split|00001740-n"), most significant first."""
    digest = hashlib.blake2b(b"0|split|00001740-n", digest_size=8).hexdigest()
    assert keyed(0, "split", "00001740-n") == int(digest, 16)
