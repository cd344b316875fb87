"""SemCor: both published forms, folder or archive, where it is looked for, and what its words say."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.sources.semcor import Word, read
from corpora.sources.semcor_files import SemcorFiles, expected, locate
from corpora.sources.wordnet import Wordnet
from corpora.store.errors import CorpusError
from tests.corpora.semcor_samples import as_xml, document, tagfiles, write_archive, write_folder, write_zip

SAID = """<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done rdf=group pos=NNP lemma=group wnsn=1 lexsn=1:03:00:: pn=group>Grand_Jury</wf>
<wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>
<wf cmd=done pos=JJ lemma=each wnsn=1 lexsn=5:00:00:all(a):00>each</wf>
<wf cmd=done pos=JJ lemma=wide wnsn=0;1 lexsn=5:00:00:broad:00;3:00:01::>wide</wf>
<punc>&</punc>
</s>
<s snum=2>
<wf cmd=ignore pos=NN>end</wf>
</s>"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No SemCor from the environment or the home of whoever runs the tests."""
    for variable in ("SEMRAY_SEMCOR", "SEMRAY_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("corpora.sources.semcor_files.nltk_folders", lambda: [tmp_path / "home" / "nltk_data"])


@pytest.mark.parametrize("form", [str, as_xml])
def test_sentences_and_their_words(form: type[str]) -> None:
    text = form(document("brown1/tagfiles/br-a01", [SAID])).encode("latin-1")
    first, second = read({"brown1/tagfiles/br-a01": text})
    assert (first.file, first.number, second.number) == ("br-a01", "1", "2")
    assert first.tokens == ("The", "Grand_Jury", "said", "each", "wide", "&")
    assert first.words == (
        Word(1, "group", ("group%1:03:00::",), True),
        Word(2, "say", ("say%2:32:00::",), False),
        Word(3, "each", ("each%5:00:00:all(a):00",), False),
        Word(4, "wide", ("wide%5:00:00:broad:00", "wide%3:00:01::"), False),
    )
    assert second.words == ()


@pytest.mark.parametrize(
    ("attributes", "proper"),
    [("pos=NNP", True), ("pos=NN", False), ("pos=NN pn=other", True), ("pos=NNP pn=person", True)],
)
def test_a_named_entity_or_a_proper_noun_is_a_name(attributes: str, proper: bool) -> None:
    word = f"<wf cmd=done {attributes} lemma=jersey wnsn=1 lexsn=1:15:00::>Jersey</wf>"
    text = document("brown1/tagfiles/br-a01", [f"<s snum=1>\n{word}\n</s>"])
    (sentence,) = read({"brown1/tagfiles/br-a01": text.encode()})
    assert [word.proper for word in sentence.words] == [proper]


def test_broken_files_are_named() -> None:
    for text, told in (
        ("<wf cmd=ignore pos=DT>The</wf>", "br-a01: 'The' stands outside every sentence"),
        ("<s>\n</s>", "br-a01: a sentence without number"),
        ("", "br-a01: no sentence found"),
    ):
        with pytest.raises(CorpusError, match=told):
            list(read({"brown1/tagfiles/br-a01": text.encode()}))


def test_the_names_of_all_files() -> None:
    """103, 83 and 166 files, as the README of SemCor 3.0 counts them."""
    names = expected()
    concordances = [name.partition("/")[0] for name in names]
    assert {part: concordances.count(part) for part in set(concordances)} == {
        "brown1": 103, "brown2": 83, "brownv": 166,
    }  # fmt: skip
    assert len({name.rpartition("/")[2] for name in names}) == 352


def test_the_form_of_the_source_makes_no_difference(tmp_path: Path) -> None:
    files = tagfiles()
    folder = SemcorFiles(write_folder(tmp_path / "unpacked", files))
    archive = SemcorFiles(write_archive(tmp_path / "semcor3.0.tar.gz", dict(reversed(files.items()))))
    packed = SemcorFiles(write_zip(tmp_path / "semcor.zip", files))
    assert folder.digests() == archive.digests()
    assert list(folder.texts) == list(archive.texts) == list(packed.texts) == list(expected())
    assert list(read(folder.texts)) == list(read(packed.texts))


def test_missing_files_are_named(tmp_path: Path) -> None:
    files = tagfiles()
    del files["brown1/tagfiles/br-a01"]
    place = write_folder(tmp_path / "semcor", files)
    with pytest.raises(CorpusError) as error:
        SemcorFiles(place).digests()
    told = f"semcor at {place} has 351 files, expected 352; missing brown1/tagfiles/br-a01\n"
    assert told in str(error.value)
    few = write_folder(tmp_path / "few", {"brown1/tagfiles/br-a01": document("", [SAID])})
    with pytest.raises(CorpusError, match=r"has 1 files, expected 352; missing .* and 346 more"):
        SemcorFiles(few).digests()


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    for name in ("semcor3.0.tar.gz", "semcor.zip"):
        place = tmp_path / name
        place.write_bytes(b"not an archive")
        with pytest.raises(CorpusError, match=f"{name} cannot be read"):
            SemcorFiles(place).digests()


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place in turn, from the last to the first: every new one goes before those already there."""
    files = {"brown1/tagfiles/br-a01": document("", [SAID])}
    nltk = write_zip(tmp_path / "home" / "nltk_data" / "corpora" / "semcor.zip", files)
    assert locate().place == nltk
    cached = write_archive(tmp_path / "cache" / "semcor" / "semcor3.0.tar.gz", files)
    assert locate().place == cached
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "data"))
    data = write_folder(tmp_path / "data" / "semcor" / "semcor3.0", files)
    assert locate().place == data
    named = write_folder(tmp_path / "named", files)
    monkeypatch.setenv("SEMRAY_SEMCOR", str(named))
    assert locate().place == named
    setting = write_archive(tmp_path / "setting.tar.gz", files)
    assert locate(str(setting)).place == setting


def test_a_named_place_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_zip(tmp_path / "home" / "nltk_data" / "corpora" / "semcor.zip", {})
    with pytest.raises(
        CorpusError, match=r"data.semcor = .*empty' holds no SemCor\n  accepted: a folder with brown1"
    ):
        locate(str(tmp_path / "empty"))
    monkeypatch.setenv("SEMRAY_SEMCOR", str(tmp_path / "empty"))
    with pytest.raises(CorpusError, match="SEMRAY_SEMCOR = "):
        locate()


def test_every_place_is_named_when_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "data"))
    with pytest.raises(CorpusError) as error:
        locate()
    for part in (
        str(tmp_path / "data" / "semcor"),
        str(tmp_path / "cache" / "semcor"),
        str(tmp_path / "home" / "nltk_data" / "corpora" / "semcor"),
        "python -m nltk.downloader semcor",
        "or set SEMRAY_SEMCOR",
    ):
        assert part in str(error.value)


def test_real_semcor_has_its_known_size(real_semcor: SemcorFiles, real: Wordnet) -> None:
    """Sentences and tokens of SemCor 3.0; of 234,136 annotations all but sense 0 and one resolve in WordNet 3.0."""
    sentences = list(read(real_semcor.texts))
    words = [word for sentence in sentences for word in sentence.words if word.keys]
    single = [word.keys[0] in real.keys for word in words if len(word.keys) == 1]
    assert len(sentences) == 37_176
    assert sum(len(sentence.tokens) for sentence in sentences) == 778_587
    assert len(words) == 234_136
    assert len(words) - len(single) == 703
    assert sum(single) == 225_336
