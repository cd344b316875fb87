from __future__ import annotations

import shutil
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from corpora.concept.views import distinct_lemmas, synonym_rows
from corpora.sources.texts import norm
from corpora.sources.wordnet import Wordnet, definition_of, read
from corpora.sources.wordnet_files import FILES, WordnetFiles, locate
from corpora.store.errors import CorpusError


@pytest.fixture
def copy(small_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_folder, tmp_path / "copy"))


def test_counts_of_the_real_files(real: Wordnet) -> None:
    """WordNet 3.0's own statistics (wnstats(7WN)): synsets per part of speech and word-sense pairs."""
    synsets = real.synsets.values()
    assert Counter(synset.pos for synset in synsets) == {"n": 82115, "v": 13767, "a": 18156, "r": 3621}
    assert sum(len(synset.lemmas) for synset in synsets) == 206_978
    assert sum(synset.head is not None for synset in synsets) == 10_693
    carriers = Counter(synset.definition for synset in synsets)
    assert (len(carriers), sum(count for count in carriers.values() if count > 1)) == (116_697, 1_630)
    assert all(carriers)


def test_synonym_pairs_of_the_real_files(real: Wordnet) -> None:
    synsets = real.synsets.values()
    assert sum(len(synset.lemmas) * (len(synset.lemmas) - 1) for synset in synsets) == 315_984
    assert sum(len(synset.lemmas) - len(distinct_lemmas(synset)) for synset in synsets) == 37
    assert sum(1 for _ in synonym_rows(synsets)) == 315_850


def test_tag_counts_find_their_senses(real: Wordnet) -> None:
    """A satellite's key names its head with the marker it carries in data.adj: above%5:00:00:preceding(a):00."""
    assert "above%5:00:00:preceding(a):00" in real.keys
    frequencies = sorted((synset.frequency for synset in real.synsets.values()), reverse=True)
    assert sum(frequencies) == 249_503
    assert sum(count > 0 for count in frequencies) == 27_254


def test_antonyms_answer_one_another(real: Wordnet) -> None:
    """Antonymy is symmetric; WordNet 3.0 itself leaves five of its pointers unanswered (miss -> have, ...)."""
    pointers = {
        (synset.id, pointer.word, pointer.target, pointer.target_word)
        for synset in real.synsets.values()
        for pointer in synset.antonyms
    }
    unanswered = [pointer for pointer in pointers if (*pointer[2:], *pointer[:2]) not in pointers]
    assert (len(pointers), len(unanswered)) == (7979, 5)


def test_fields_of_one_synset(real: Wordnet) -> None:
    dog = real.synsets[real.senses["dog", "n"][0]]
    assert dog.lemmas == ("dog", "domestic_dog", "Canis_familiaris")
    assert dog.lexname == "noun.animal"
    assert dog.definition.startswith("a member of the genus Canis")
    assert '"' not in dog.definition
    assert {real.synsets[above].lemmas[0] for above in dog.hypernyms} == {"canine", "domestic_animal"}
    assert real.keys["dog%1:05:00::"] == dog.id


def test_bases_prefer_exceptions_then_the_word_then_detachment(real: Wordnet) -> None:
    assert real.bases("thinner", "a") == ("thin",)
    assert real.bases("larger", "a") == ("larger",)
    assert real.bases("boxes", "n") == ("box",)
    assert real.bases("went", "v") == ("go",)
    assert real.bases("xyzzy", "n") == ()


def test_definition_ends_before_the_first_example() -> None:
    assert definition_of('cut; in two; "cut bread"; not this') == "cut; in two"
    assert definition_of('(a "quoted" word) kept') == '(a "quoted" word) kept'


def test_small_lexicon(small: Wordnet) -> None:
    icy = small.synsets[small.senses["icy", "a"][0]]
    assert icy.lemmas == ("icy",)
    assert icy.head == small.senses["cold", "a"][0]
    assert small.synsets[icy.head].antonyms[0].target == small.senses["hot", "a"][0]
    assert small.bases("held", "v") == ("hold",)
    assert {norm(lemma) for lemma in small.synsets[small.senses["item_3", "n"][0]].lemmas} >= {"item 3"}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(CorpusError, match=f"cannot read {name}"):
        read(WordnetFiles(copy))


def test_a_file_cut_inside_a_record_is_named(copy: Path) -> None:
    whole = (copy / "data.noun").read_bytes()
    (copy / "data.noun").write_bytes(whole[: len(whole) - 30])
    with pytest.raises(CorpusError, match=r"data\.noun, byte \d+: not a whole record"):
        read(WordnetFiles(copy))


def test_a_file_cut_between_records_is_noticed_by_its_index(copy: Path) -> None:
    lines = (copy / "data.noun").read_bytes().splitlines(keepends=True)
    (copy / "data.noun").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(CorpusError, match=r"data\.noun lacks \d{8}-n, listed by index\.noun"):
        read(WordnetFiles(copy))


def test_moved_records_are_noticed(copy: Path) -> None:
    whole = (copy / "data.verb").read_bytes()
    (copy / "data.verb").write_bytes(b"  2 one more line of header\n" + whole)
    with pytest.raises(CorpusError, match=r"data\.verb, byte \d+: the record calls itself"):
        read(WordnetFiles(copy))


def test_a_broken_count_is_named(copy: Path) -> None:
    with (copy / "cntlist.rev").open("a") as file:
        file.write("dog%1:05:00:: many\n")
    with pytest.raises(CorpusError, match=r"cntlist\.rev, line \d+"):
        read(WordnetFiles(copy))


def test_a_zip_reads_like_its_folder(small_folder: Path, small: Wordnet, tmp_path: Path) -> None:
    packed = tmp_path / "corpora" / "wordnet.zip"
    packed.parent.mkdir()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in FILES:
            archive.write(small_folder / name, f"wordnet/{name}")
    assert read(WordnetFiles(packed)) == small
    assert WordnetFiles(packed).digests() == WordnetFiles(small_folder).digests()
    packed.write_bytes(packed.read_bytes()[:1000])
    with pytest.raises(CorpusError, match=r"wordnet\.zip"):
        read(WordnetFiles(packed))


def test_where_it_looks(small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = Path(shutil.copytree(small_folder, tmp_path / "nltk" / "corpora" / "wordnet"))
    monkeypatch.delenv("SEMRAY_WORDNET", raising=False)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    assert locate().place == unpacked
    monkeypatch.setenv("SEMRAY_WORDNET", str(small_folder))
    assert locate().place == small_folder
    assert locate(str(unpacked)).place == unpacked


def test_a_named_place_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CorpusError, match=r"the `wordnet` setting = .* holds no WordNet"):
        locate(str(tmp_path))
    monkeypatch.setenv("SEMRAY_WORDNET", str(tmp_path))
    with pytest.raises(CorpusError, match="SEMRAY_WORDNET = "):
        locate()


def test_not_found_names_places_and_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_WORDNET", raising=False)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr("corpora.sources.wordnet_files.DEBIAN", tmp_path / "debian")
    with pytest.raises(CorpusError) as caught:
        locate()
    for part in (
        str(tmp_path / "corpora" / "wordnet.zip"),
        str(tmp_path / "debian"),
        "apt-get install wordnet-base",
    ):
        assert part in str(caught.value)
