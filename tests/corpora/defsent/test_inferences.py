"""Pairs for the Sentence-BERT arm: SNLI in three files a part, SICK's entailment, and the hub's sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.defsent import inferences
from corpora.store.errors import CorpusError
from tests.published import COLLECTION, needs

SNLI = [("A man eats .", "A man sleeps .", "contradiction"), ("A dog runs .", "An animal runs .", "entailment")]


def snli(folder: Path) -> Path:
    place = folder / "snli"
    place.mkdir(parents=True)
    for part in ("dev", "test"):
        for name, column in zip(("s1", "s2", "labels"), zip(*SNLI, strict=True), strict=True):
            (place / f"{name}.{part}").write_text("".join(f"{value} \n" for value in column))
    return folder


def test_snli_side_by_side(tmp_path: Path):
    rows = inferences.read("snli_devtest", str(snli(tmp_path)))
    assert rows is not None
    assert (len(rows), rows.source) == (4, "snli_devtest")
    assert (rows.premises[1], rows.hypotheses[1], rows.label.tolist()) == (
        "A dog runs .",
        "An animal runs .",
        [2, 0] * 2,
    )
    assert len(inferences.identity("snli_devtest", str(tmp_path))) == 6


def test_files_that_do_not_fit_together(tmp_path: Path):
    place = snli(tmp_path) / "snli"
    (place / "labels.test").write_text("neutral\n")
    with pytest.raises(CorpusError, match=r"labels\.test 1"):
        inferences.read("snli_devtest", str(tmp_path))
    (place / "s2.dev").unlink()
    with pytest.raises(CorpusError, match=r"lacks s2\.dev"):
        inferences.read("snli_devtest", str(tmp_path))


def test_a_line_is_what_ends_in_a_newline(tmp_path: Path):
    """Not at U+2028, which stands inside of texts; and a byte-order mark is no part of the first label."""
    place = snli(tmp_path) / "snli"
    for name, text in (("s1", "A man\u2028eats\nA dog\n"), ("labels", "neutral\nentailment\n")):
        (place / f"{name}.dev").write_text(text, encoding="utf-8-sig")
    rows = inferences.read("snli_devtest", str(tmp_path))
    assert rows is not None
    assert (len(rows), rows.premises[0], rows.label.tolist()) == (4, "A man\u2028eats", [1, 0, 2, 0])


def test_pairs_without_an_agreed_label_are_left_out_and_slips_refused(tmp_path: Path):
    labels = snli(tmp_path) / "snli" / "labels.dev"
    labels.write_text("-\n\n")
    rows = inferences.read("snli_devtest", str(tmp_path))
    assert rows is not None
    assert rows.label.tolist() == [2, 0]
    labels.write_text("neutral\nentailmnt\n")
    with pytest.raises(
        CorpusError, match=r"labels\.dev, line 2: label 'entailmnt'\n  accepted: entailment, neutral"
    ):
        inferences.read("snli_devtest", str(tmp_path))
    labels.write_bytes(b"\xff\n\n")
    with pytest.raises(CorpusError, match=r"labels\.dev cannot be read"):
        inferences.read("snli_devtest", str(tmp_path))


def test_sick(tmp_path: Path):
    (tmp_path / "SICK_train.txt").write_text(
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        "1\tA man eats\tA man is eating\t4.9\tENTAILMENT\n2\tA cup\tA jug\t2\tNEUTRAL\n"
    )
    rows = inferences.read("sick_e", str(tmp_path))
    assert rows is not None
    assert (list(rows.hypotheses), rows.label.tolist()) == (["A man is eating", "A jug"], [0, 1])
    with (tmp_path / "SICK_train.txt").open("a") as file:
        file.write("3\tA cup\tA jug\t2\tNEUTRL\n")
    with pytest.raises(CorpusError, match=r"SICK_train\.txt, line 4: label 'neutrl'"):
        inferences.read("sick_e", str(tmp_path))


@needs("snli")
@needs("senteval/SICK")
def test_the_counts_of_the_published_sets():
    """SNLI: 9,842 rows of dev and 9,824 of test, all with a label; SICK: 4,500 of its training part."""
    snli, sick = (inferences.read(source, str(COLLECTION)) for source in ("snli_devtest", "sick_e"))
    assert snli is not None
    assert sick is not None
    assert (len(snli), len(sick)) == (9_842 + 9_824, 4_500)
    lines = [len((COLLECTION / "snli" / f"labels.{part}").read_text().splitlines()) for part in ("dev", "test")]
    assert lines == [9_842, 9_824]


def test_nothing_asked_for_nothing_read():
    assert inferences.read("none", None) is None
    assert inferences.identity("none", None) == {}


def test_the_hubs_sets_without_the_pairs_nobody_agreed_on(monkeypatch: pytest.MonkeyPatch):
    datasets = pytest.importorskip("datasets")
    asked = []

    class Hub:
        def dataset_info(self, repository: str):
            return type("Info", (), {"sha": f"revision of {repository}"})()

    def load_dataset(repository: str, *, split: str, revision: str, trust_remote_code: bool):
        asked.append((repository, split, revision))
        rows = {"premise": ["a", "b"], "hypothesis": ["c", "d"], "label": [2, -1], "idx": [0, 1]}
        return datasets.Dataset.from_dict(rows)

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    rows = inferences.read("snli_mnli", None)
    assert rows is not None
    assert (list(rows.premises), rows.label.tolist()) == (["a", "a"], [2, 2])
    assert [repository for repository, *_ in asked] == list(inferences.HUB)
    assert inferences.identity("snli_mnli", None) == {name: f"revision of {name}" for name in inferences.HUB}


def test_a_hub_out_of_reach_says_what_there_is_without_it(monkeypatch: pytest.MonkeyPatch):
    class Hub:
        def dataset_info(self, repository: str):
            raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    with pytest.raises(CorpusError, match="no route\n  accepted without the hub: snli_devtest or sick_e"):
        inferences.read("snli_mnli", None)
