"""A WordNet small enough to read, in WordNet's own file format, and the real one where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpora.cale.data import CaleData
from corpora.cale.records import Tagged
from corpora.cale.spcd import tagged
from corpora.concept.build import build_concept
from corpora.concept.data import ConceptData
from corpora.concept.masking import masker
from corpora.concept.tables import BuiltCorpus
from corpora.sources.semcor import read as read_semcor
from corpora.sources.semcor_files import SemcorFiles
from corpora.sources.semcor_files import locate as locate_semcor
from corpora.sources.texts import words
from corpora.sources.wordnet import SS_TYPES, Wordnet, read
from corpora.sources.wordnet_files import POS_FILES, WordnetFiles, locate
from corpora.store.errors import CorpusError


@dataclass(frozen=True)
class Entry:
    """A synset to write: `links` are (symbol, key of the target entry, source and target word number)."""

    key: str
    pos: str
    lexfile: int
    words: tuple[str, ...]
    gloss: str
    links: tuple[tuple[str, str, str], ...] = ()
    tags: int = 0


def write_wordnet(folder: Path, entries: list[Entry], exceptions: Mapping[str, list[str]]) -> None:
    """data, index, exception and count files of these entries; the offsets are true byte positions."""
    header = "  1 A small lexicon in the format of WordNet.\n"
    by_key = {entry.key: entry for entry in entries}
    by_file = {pos: [entry for entry in entries if entry.pos.replace("s", "a") == pos] for pos in POS_FILES}
    offsets: dict[str, int] = dict.fromkeys(by_key, 0)
    for filed in by_file.values():
        at = len(header)
        for entry in filed:
            offsets[entry.key] = at
            at += len(
                _line(entry, by_key, offsets).encode()
            )  # offsets have eight digits, so lines keep their length
    for pos, name in POS_FILES.items():
        data = [_line(entry, by_key, offsets) for entry in by_file[pos]]
        senses: dict[str, list[str]] = {}
        for entry in by_file[pos]:
            for word in entry.words:
                senses.setdefault(word.partition("(")[0].lower(), []).append(f"{offsets[entry.key]:08d}")
        index = [f"{word} {pos} {len(at)} 0 {len(at)} 0 {' '.join(at)}  \n" for word, at in sorted(senses.items())]
        (folder / f"data.{name}").write_text(header + "".join(data))
        (folder / f"index.{name}").write_text(header + "".join(index))
        (folder / f"{name}.exc").write_text("".join(f"{line}\n" for line in exceptions.get(pos, [])))
    tagged = [entry for entry in entries if entry.tags]
    keys = [f"{entry.words[0].lower()}%{SS_TYPES[entry.pos]}:{entry.lexfile:02d}:00::" for entry in tagged]
    counts = [f"{key} 1 {entry.tags}\n" for key, entry in zip(keys, tagged, strict=True)]
    (folder / "cntlist.rev").write_text("".join(counts))


def _line(entry: Entry, by_key: Mapping[str, Entry], offsets: Mapping[str, int]) -> str:
    listed = " ".join(f"{word} 0" for word in entry.words)
    links = "".join(f" {symbol} {offsets[key]:08d} {by_key[key].pos} {ends}" for symbol, key, ends in entry.links)
    start = f"{offsets[entry.key]:08d} {entry.lexfile:02d} {entry.pos} {len(entry.words):02x}"
    return f"{start} {listed} {len(entry.links):03d}{links} | {entry.gloss}  \n"


FIRST = words(
    "amber brisk candid dapper eager fancy gentle humble ivory jolly keen lively mellow noble oaken placid"
)
SECOND = words(
    "anvil basket candle drum engine funnel goblet hammer inkwell jug kettle ladder mirror needle organ pot"
)


def small_entries() -> list[Entry]:
    """Type roots, adjectives with antonyms, verbs, and 240 nouns whose lemmas recur in other synsets.

    Noun i has the lemmas item_i and item_(7i mod 240), so half the surfaces have two senses; the first 40 are
    tagged. Every eighth shares its definition's wording with the noun before it.
    """
    roots = ("person", "organization", "living_thing", "location", "artifact", "event", "abstraction")
    entries = [
        Entry(root, "n", 14 if root == "organization" else 3, (root,), f"the root of every {SECOND[number]} here")
        for number, root in enumerate(roots)
    ]
    entries += [
        Entry("cold", "a", 0, ("cold",), 'of low warmth; "a cold room"', (("!", "hot", "0101"),)),
        Entry("hot", "a", 0, ("hot",), "of high warmth", (("!", "cold", "0101"),)),
        Entry("icy", "s", 0, ("icy(p)",), "like frozen water", (("&", "cold", "0000"),)),
        Entry("hold", "v", 35, ("hold", "keep"), "have in a hand and not let go"),
        Entry("rewrite", "v", 35, ("rewrite",), "write again in other words"),
        Entry("relocate", "v", 35, ("relocate",), "settle in a new place"),
        Entry("write", "v", 35, ("write",), "put letters on paper"),
        Entry("locate", "v", 35, ("locate",), "find where it lies"),
    ]
    for number in range(240):
        lemmas = dict.fromkeys((f"item_{number}", f"item_{7 * number % 240}", f"x{number}y"))
        told = number - (number % 8 == 7)
        gloss = f"a {FIRST[told % 16]} {SECOND[told // 16]} that holds cold things number {told}"
        links = () if number % 9 == 0 else (("@", roots[number % 7], "0000"),)
        entries.append(Entry(f"item{number}", "n", 6, tuple(lemmas), gloss, links, tags=max(0, 40 - number)))
    return entries


SMALL_EXCEPTIONS = {"v": ["held hold", "wrote write", "written write"], "n": ["oxen ox"]}


def write_small_wordnet(folder: Path) -> None:
    """The small lexicon in this folder, which is made where it is not there."""
    folder.mkdir(exist_ok=True)
    write_wordnet(folder, small_entries(), SMALL_EXCEPTIONS)


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small-wordnet")
    write_small_wordnet(folder)
    return folder


@pytest.fixture(scope="session")
def small_data(small_folder: Path) -> ConceptData:
    return ConceptData(wordnet=str(small_folder), n_hh=20, n_id=20, n_dev=10)


@pytest.fixture
def tarn_and_mere(tmp_path: Path) -> Path:
    """The small lexicon with one more synset: "tarn" and "mere", whose definition names both."""
    folder = tmp_path / "tarn"
    folder.mkdir()
    pair = Entry("pair", "n", 6, ("tarn", "mere"), "a tarn or mere in the hills")
    write_wordnet(folder, [*small_entries(), pair], SMALL_EXCEPTIONS)
    return folder


@pytest.fixture(scope="session")
def small(small_folder: Path) -> Wordnet:
    return read(WordnetFiles(small_folder))


@pytest.fixture(scope="session")
def real_files() -> WordnetFiles:
    try:
        return locate()
    except CorpusError as error:
        pytest.skip(f"needs WordNet 3.0: {error}")


@pytest.fixture(scope="session")
def real(real_files: WordnetFiles) -> Wordnet:
    return read(real_files)


@pytest.fixture(scope="session")
def real_masked(real: Wordnet) -> dict[str, str]:
    mask = masker(real)
    return {synset.id: mask(synset, synset.lemmas) for synset in real.synsets.values()}


@pytest.fixture(scope="session")
def real_corpus(real: Wordnet) -> BuiltCorpus:
    return build_concept(ConceptData(), real)


@pytest.fixture(scope="session")
def small_corpus(small_data: ConceptData, small: Wordnet) -> BuiltCorpus:
    return build_concept(small_data, small)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def real_semcor() -> SemcorFiles:
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "semcor"
    try:
        return locate_semcor(str(beside) if beside.is_dir() else None)
    except CorpusError as error:
        pytest.skip(f"needs SemCor 3.0: {error}")


@pytest.fixture(scope="session")
def real_tagged(real_semcor: SemcorFiles, real: Wordnet) -> list[Tagged]:
    return tagged(read_semcor(real_semcor.texts), real, CaleData())
