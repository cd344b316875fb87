"""A SemCor of 352 tiny files, in both published forms, and the lexicon its sense keys are from."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from pathlib import Path

from corpora.sources.semcor_files import expected
from tests.corpora.conftest import Entry, write_wordnet

LEMMAS = ("bank", "shore", "river", "money", "depot", "stream", "anvil", "candle", "engine", "hammer")
FIRST_FILE, LAST_FILE = 15, 17  # lexicographer files of a lemma's first and second sense


def write_lexicon(folder: Path) -> None:
    """Each lemma has two senses, which it shares with the lemmas beside it; a satellite whose head has a marker."""
    ring = list(zip(LEMMAS, (*LEMMAS[1:], LEMMAS[0]), strict=True))
    entries = [Entry("top", "n", 3, ("entity",), "what there is")]
    entries += [
        Entry(a, "n", FIRST_FILE, (a, b), f"where {a} and {b} meet", (("@", "top", "0000"),)) for a, b in ring[::2]
    ]
    entries += [
        Entry(a, "n", LAST_FILE, (a, b), f"what {a} and {b} share", (("@", "top", "0000"),)) for a, b in ring[1::2]
    ]
    entries += [
        Entry("day", "n", 28, ("Friday",), "the day before the last"),
        Entry("chief", "a", 0, ("main(a)",), "first of all", (("&", "prime", "0000"),)),
        Entry("prime", "s", 0, ("prime",), "first in rank", (("&", "chief", "0000"),)),
        Entry("well", "r", 2, ("well",), "in a good way"),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_wordnet(folder, entries, {})


def tagfiles() -> dict[str, str]:
    """352 files by name. File k holds three sentences of four annotated nouns, senses turning with k."""
    files = {}
    for number, name in enumerate(expected()):
        sentences = []
        for turn in range(3):
            chosen = [LEMMAS[(number * 7 + turn * 3 + step * (1 + turn)) % len(LEMMAS)] for step in range(4)]
            words = [_noun(lemma, FIRST_FILE if (number + turn) % 2 else LAST_FILE) for lemma in chosen]
            body = "\n".join(["<wf cmd=ignore pos=DT>The</wf>", *words, "<punc>.</punc>"])
            sentences.append(f"<s snum={turn + 1}>\n{body}\n</s>")
        files[name] = document(name, sentences)
    return files


def document(name: str, sentences: list[str]) -> str:
    body = "\n".join(sentences)
    return (
        f"<contextfile concordance=brown>\n<context filename={name.rpartition('/')[2]} paras=yes>\n{body}\n"
        "</context>\n</contextfile>\n"
    )


def as_xml(tagfile: str) -> str:
    """The form NLTK gives a tag file: attributes in quotes, `&` as an entity, a declaration before it."""
    quoted = re.sub(r"=([^\s>]+)", r'="\1"', tagfile).replace("&", "&amp;")
    return f'<?xml version="1.0" encoding="ISO-8859-1" ?>\n{quoted}'


def write_folder(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1")
    return folder


def write_archive(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"semcor3.0/{name}")
            content = text.encode("latin-1")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_zip(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"semcor/{name}.xml", as_xml(text).encode("latin-1"))
    return path


def _noun(lemma: str, lexfile: int) -> str:
    """`bank` in its first or second sense; lemmas pair up the other way round in the second."""
    return f"<wf cmd=done pos=NN lemma={lemma} wnsn=1 lexsn=1:{lexfile:02d}:00::>{lemma}s</wf>"
