"""WordNet 3.0 as typed records: synsets, senses of a word, tag counts, exceptions.

Formats: wndb(5WN), senseidx(5WN), morphy(7WN). Reading takes about 3 s.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from corpora.sources.texts import words
from corpora.sources.wordnet_files import POS_FILES, WordnetFiles
from corpora.store.errors import CorpusError

# Names of the lexicographer files by number (lexnames(5WN)).
LEXNAMES = words("""
    adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
    noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object
    noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape
    noun.state noun.substance noun.time verb.body verb.change verb.cognition verb.communication
    verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception
    verb.possession verb.social verb.stative verb.weather adj.ppl
    """)
SS_TYPES = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_POS_OF_TYPE = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
# Endings that the lemma search removes, and their replacements (morphy(7WN)); adverbs have none.
DETACHMENT = {
    "n": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
        *(("men", "man"), ("ies", "y")),
    ),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}


class Pointer(NamedTuple):
    """A lexical relation from one word of a synset to one word of another (places count from 0)."""

    word: int
    target: str
    target_word: int


@dataclass(frozen=True, slots=True)
class Synset:
    """One concept. `id` is offset-pos with satellites filed under "a"; lemmas keep underscores and capitals.

    counts: tag count of each lemma in this sense. head: of a satellite adjective, the synset it clusters around.
    derived: target of each derivational pointer. antonyms: lexical, word to word.
    """

    id: str
    pos: str
    lexfile: int
    lemmas: tuple[str, ...]
    definition: str
    gloss: str
    counts: tuple[int, ...]
    hypernyms: tuple[str, ...]
    head: str | None
    antonyms: tuple[Pointer, ...]
    derived: tuple[Pointer, ...]

    @property
    def frequency(self) -> int:
        return sum(self.counts)

    @property
    def lexname(self) -> str:
        return LEXNAMES[self.lexfile]


@dataclass(frozen=True)
class Wordnet:
    """The whole lexicon. Keys of `senses` and `counts` are (lower-case lemma with underscores, pos).

    synsets: by id, in id order. senses: synset ids in WordNet's sense order. counts: tag count summed over
    senses. exceptions: per pos, irregular form -> its base forms. keys: sense key -> synset id.
    """

    synsets: Mapping[str, Synset]
    senses: Mapping[tuple[str, str], tuple[str, ...]]
    counts: Mapping[tuple[str, str], int]
    exceptions: Mapping[str, Mapping[str, tuple[str, ...]]]
    keys: Mapping[str, str]

    def bases(self, token: str, pos: str) -> tuple[str, ...]:
        """Lemmas of a lower-case token: its bases as an exception, else itself, else the token without endings."""
        listed = tuple(base for base in self.exceptions[pos].get(token, ()) if (base, pos) in self.senses)
        if listed:
            return listed
        if (token, pos) in self.senses:
            return (token,)
        cut = (token[: -len(end)] + back for end, back in DETACHMENT[pos] if token.endswith(end))
        return tuple(dict.fromkeys(base for base in cut if (base, pos) in self.senses))


class _Record(NamedTuple):
    """A data line before links between synsets are known."""

    id: str
    satellite: bool
    lexfile: int
    words: tuple[str, ...]
    lex_ids: tuple[int, ...]
    gloss: str
    hypernyms: tuple[str, ...]
    clusters: tuple[str, ...]
    antonyms: tuple[Pointer, ...]
    derived: tuple[Pointer, ...]


def read(files: WordnetFiles) -> Wordnet:
    """Parse all files. CorpusError with file, place and reason when one is missing, cut short or inconsistent."""
    tagged = dict(_tag_counts(files))
    records = {record.id: record for pos in POS_FILES for record in _data(files, pos)}
    senses = {key: ids for pos in POS_FILES for key, ids in _index(files, pos, records)}
    exceptions = {pos: _exceptions(files, pos) for pos in POS_FILES}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for key, count in tagged.items():
        lemma, _, rest = key.partition("%")
        counts[lemma, _POS_OF_TYPE[rest[0]]] += count
    synsets: dict[str, Synset] = {}
    keys: dict[str, str] = {}
    for identifier in sorted(records):
        record = records[identifier]
        head = _head(record, records)
        own_keys = _sense_keys(record, head)
        keys.update((key, identifier) for key in own_keys)
        synsets[identifier] = Synset(
            id=identifier,
            pos=identifier[-1],
            lexfile=record.lexfile,
            lemmas=_lemmas(record),
            definition=definition_of(record.gloss),
            gloss=record.gloss,
            counts=tuple(tagged.get(key, 0) for key in own_keys),
            hypernyms=record.hypernyms,
            head=head.id if head else None,
            antonyms=record.antonyms,
            derived=record.derived,
        )
    return Wordnet(synsets, senses, dict(counts), exceptions, keys)


def definition_of(gloss: str) -> str:
    """The pieces of a gloss before its first example: an example is a `;`-piece that starts with a quote."""
    kept = []
    for piece in gloss.split(";"):
        if piece.lstrip().startswith('"'):
            break
        kept.append(piece)
    return ";".join(kept).strip()


def _data(files: WordnetFiles, pos: str) -> Iterator[_Record]:
    name = f"data.{POS_FILES[pos]}"
    place = 0
    for raw in files.read(name).splitlines(keepends=True):
        if not raw.startswith(b"  "):
            try:
                record = _record(raw.decode())
            except (ValueError, IndexError) as error:
                raise CorpusError(
                    f"corpora: WordNet at {files.place}: {name}, byte {place}: not a whole record ({error})"
                ) from error
            if int(record.id[:-2]) != place or record.id[-1] != pos:
                raise CorpusError(
                    f"corpora: WordNet at {files.place}: {name}, byte {place}: the record calls itself {record.id}"
                )
            yield record
        place += len(raw)


def _record(line: str) -> _Record:
    if not line.endswith("\n"):
        raise ValueError("the line is cut short")
    head, bar, gloss = line.partition(" | ")
    if not bar:
        raise ValueError("no gloss")
    field = head.split(" ")
    words = int(field[3], 16)
    lex_ids = tuple(int(digit, 16) for digit in field[5 : 5 + 2 * words : 2])
    first = 5 + 2 * words
    hypernyms: list[str] = []
    clusters: list[str] = []
    antonyms: list[Pointer] = []
    derived: list[Pointer] = []
    for at in range(first, first + 4 * int(field[first - 1]), 4):
        symbol, offset, pos, ends = field[at : at + 4]
        target = f"{offset}-{'a' if pos == 's' else pos}"
        if symbol in ("@", "@i"):
            hypernyms.append(target)
        elif symbol == "&":
            clusters.append(target)
        elif symbol in ("!", "+"):
            pointer = Pointer(int(ends[:2], 16) - 1, target, int(ends[2:], 16) - 1)
            (antonyms if symbol == "!" else derived).append(pointer)
    return _Record(
        id=f"{field[0]}-{'a' if field[2] == 's' else field[2]}",
        satellite=field[2] == "s",
        lexfile=int(field[1]),
        words=tuple(field[4 : 4 + 2 * words : 2]),
        lex_ids=lex_ids,
        gloss=gloss.strip(),
        hypernyms=tuple(hypernyms),
        clusters=tuple(clusters),
        antonyms=tuple(antonyms),
        derived=tuple(derived),
    )


def _index(
    files: WordnetFiles, pos: str, records: Mapping[str, _Record]
) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    name = f"index.{POS_FILES[pos]}"
    for number, line in enumerate(files.read(name).decode().splitlines(), 1):
        if line.startswith("  "):
            continue
        try:
            field = line.split()
            ids = tuple(f"{offset}-{pos}" for offset in field[len(field) - int(field[2]) :])
            lemma = field[0]
        except (ValueError, IndexError) as error:
            raise CorpusError(
                f"corpora: WordNet at {files.place}: {name}, line {number}: not a whole record"
            ) from error
        for identifier in ids:
            if identifier not in records:
                data = f"data.{POS_FILES[pos]}"
                raise CorpusError(
                    f"corpora: WordNet at {files.place}: {data} lacks {identifier}, listed by {name} for {lemma}"
                )
        yield (lemma, pos), ids


def _exceptions(files: WordnetFiles, pos: str) -> dict[str, tuple[str, ...]]:
    bases: dict[str, tuple[str, ...]] = {}
    for line in files.read(f"{POS_FILES[pos]}.exc").decode().splitlines():
        form, *listed = line.split()
        bases[form] = bases.get(form, ()) + tuple(listed)
    return bases


def _tag_counts(files: WordnetFiles) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(files.read("cntlist.rev").decode().splitlines(), 1):
        try:
            key, _, count = line.split()
            yield key, int(count)
        except ValueError as error:
            raise CorpusError(
                f"corpora: WordNet at {files.place}: cntlist.rev, line {number}: expected `key sense count`"
            ) from error


def _head(record: _Record, records: Mapping[str, _Record]) -> _Record | None:
    """The head synset of a satellite: its first `&` neighbour that is no satellite."""
    if not record.satellite:
        return None
    return next(
        (records[near] for near in record.clusters if near in records and not records[near].satellite), None
    )


def _lemmas(record: _Record) -> tuple[str, ...]:
    return tuple(_MARKER.sub("", word) for word in record.words)


def _sense_keys(record: _Record, head: _Record | None) -> list[str]:
    """lemma%type:lexfile:lexid:head:headid in lower case; only satellites name a head, and with its marker."""
    kind = 5 if record.satellite else SS_TYPES[record.id[-1]]
    tail = f"{head.words[0]}:{head.lex_ids[0]:02d}" if head else ":"
    return [
        f"{lemma}%{kind}:{record.lexfile:02d}:{lex_id:02d}:{tail}".lower()
        for lemma, lex_id in zip(_lemmas(record), record.lex_ids, strict=True)
    ]
