"""The frozen table, the judges and the scorer: stored once, read again, and honest about what they are."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.pairs import PairData
from corpora.difficulty.rows import PairTask, pair_sha256
from corpora.store.errors import CorpusError
from tests.pair_scores import evaluated
from tests.tiny import WORDS, tiny_backbone
from trainers.difficulty.data import prepared
from trainers.difficulty.fingerprint import check_cross_encoder
from trainers.difficulty.fit import fit_stack
from trainers.difficulty.judge_standin import TokenMatchStandin, match_features, wording_features
from trainers.difficulty.judges import CrossEncoderJudge, ScoresFile, judge_of, scores_of
from trainers.difficulty.pair_scorer import GatedPairScorer, ScorerError, export_scorer, load_adapter, named
from trainers.difficulty.settings import Settings
from trainers.encoders.embeddings import embed
from trainers.encoders.frozen_encoder import SentenceEncoder

SENTENCES = [
    "the old dog runs",
    "a dog that runs",
    "a red cup",
    "the cup holds water",
    "fire and wood",
    "not a house",
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("tiny"), layers=1, width=32)


@dataclass(frozen=True)
class Remote:
    """An encoder that is only an `encode`: unit vectors from the letters of a text; notes how often it is asked."""

    name: str = "letters"
    asked: list[int] = field(default_factory=list)
    given: np.ndarray | None = None  # what it gives instead

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"remote": self.name}

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.asked.append(len(sentences))
        if self.given is not None:
            return self.given
        counts = np.array([[text.count(letter) + 0.1 for letter in "abcdefghijklmnop"] for text in sentences])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def task(n: int = 24) -> PairTask:
    words = ("dog", "cup", "house", "river")

    def split(kind: str, rows: int) -> Pairs:
        a = tuple(f"the {words[i % 4]} in a {kind} {'not ' * (i % 3)}town" for i in range(rows))
        b = tuple(f"a {words[i % 3]} by the {kind} river{' bank' * (i % 2)}" for i in range(rows))
        return Pairs(tuple(map(str, range(rows))), a, b, np.linspace(0, 1, rows))

    return PairTask("toy", True, split("old", n), split("young", n // 2), "validation", "made up")


def test_what_a_stack_trains_on_has_its_judgements_and_says_whose(tmp_path: Path) -> None:
    made, file = task(), tmp_path / "scores.tsv"
    told = {pair: row / 100 for row, pair in enumerate([*zip(made.train.a, made.train.b, strict=True),
                                                        *zip(made.evaluation.a, made.evaluation.b, strict=True)])}  # fmt: skip
    file.write_text("".join(f"{a}\t{b}\t{score}\n" for (a, b), score in told.items()))
    asked = PairData(judge="scores_file", scores_file=str(file), judge_saw=("stsb",))
    judge = judge_of(asked, encoder=Remote(), resolve=Path)  # type: ignore[arg-type]
    said: list[str] = []
    data = prepared(made, Remote(), judge, said.append)
    for side in (data.train, data.evaluation):
        pairs = zip(side.pairs.a, side.pairs.b, strict=True)
        assert side.judged.tolist() == [told[pair] for pair in pairs]
        assert side.candidate_targets().keys() == {"hard_lex", "hard_ce/half", "hard_ce/identity"}
        found = side.candidate_targets()["hard_ce/identity"]
        np.testing.assert_allclose(found, np.abs(side.judged - side.anchor))
    assert (data.origin["judge"], data.origin["judge_saw"]) == ("scores_file", ["stsb"])
    assert said[-1] == "toy: scores_file scores 12 pairs"
    assert prepared(made, Remote(), None).origin["judge"] == "none"


def test_a_table_is_encoded_once(own_cache: Path) -> None:
    encoder = Remote()
    told: list[str] = []
    first = embed(encoder, SENTENCES, told.append)
    again = embed(Remote(), SENTENCES, told.append)
    assert told == [f"embedding {len(SENTENCES)} sentences"]
    assert encoder.asked == [len(SENTENCES)]
    assert np.array_equal(first.x, again.x)
    assert first.key == again.key
    assert {file.name for file in (own_cache / "embeddings" / first.key).iterdir()} >= {
        "emb.safetensors",
        "sentences.arrow",
        "meta.json",
    }


def test_other_sentences_order_or_encoder_make_another_table() -> None:
    keys = {
        embed(Remote(), SENTENCES).key,
        embed(Remote(), SENTENCES[::-1]).key,
        embed(Remote(), [*SENTENCES[:-1], SENTENCES[-1] + " "]).key,
        embed(Remote(name="other"), SENTENCES).key,
    }
    assert len(keys) == 4


def test_a_damaged_table_is_built_again(own_cache: Path) -> None:
    first = embed(Remote(), SENTENCES)
    file = own_cache / "embeddings" / first.key / "emb.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\0")
    encoder = Remote()
    assert np.array_equal(embed(encoder, SENTENCES).x, first.x)
    assert encoder.asked == [len(SENTENCES)]


UNIT = np.eye(len(SENTENCES), 8, dtype=np.float32)  # a vector of length 1 for each sentence


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (2 * UNIT, "sentence 0 has length 2; expected 1"),
        (UNIT * np.float32([[1.0005], [1], [0.5], [1], [1], [1.1]]), "sentence 2 has length 0.5; expected 1"),
        (np.where(UNIT[:, ::-1] > 0, np.nan, UNIT), "has length nan; expected 1"),
        (UNIT[:-1], r"gave float32 \(5, 8\) for 6 sentences; expected float32 \(6, d\)"),
        (UNIT[None], r"gave float32 \(1, 6, 8\) for 6 sentences"),
        (UNIT.astype(np.float64), r"gave float64 \(6, 8\) for 6 sentences"),
    ],
)
def test_what_is_no_table_of_unit_vectors_is_refused(rows: np.ndarray, said: str, own_cache: Path) -> None:
    with pytest.raises(ValueError, match=said):
        embed(Remote(given=rows), SENTENCES)
    assert not list((own_cache / "embeddings").glob("*/emb.safetensors"))


def test_vectors_as_half_precision_rounds_them_are_unit_vectors() -> None:
    rows = UNIT * np.float32(1 + 2**-11)
    assert np.array_equal(embed(Remote(given=rows), SENTENCES).x, rows)


def of_transformers(folder: Path, texts: Sequence[str], limit: int | None = None) -> np.ndarray:
    """Mean of the last layer's unmasked states, of unit length; texts cut to `limit` tokens."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(texts, padding=True, truncation=limit is not None, max_length=limit, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1).numpy()


def test_a_folder_is_read_out_as_its_own_library_does(folder: Path) -> None:
    """Limit and prompt change the table's key."""
    found = embed(SentenceEncoder(folder), SENTENCES)
    np.testing.assert_allclose(found.x, of_transformers(folder, SENTENCES), atol=1e-5)
    cut = embed(SentenceEncoder(folder, max_length=4), SENTENCES)
    np.testing.assert_allclose(cut.x, of_transformers(folder, SENTENCES, 4), atol=1e-5)
    assert cut.key != found.key
    prompted = embed(SentenceEncoder(folder, prompt="the "), SENTENCES)
    np.testing.assert_allclose(
        prompted.x[1], embed(SentenceEncoder(folder), ["the " + SENTENCES[1]]).x[0], atol=1e-5
    )


def test_weights_of_half_precision_are_computed_with_in_full(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    shutil.copytree(folder, half := tmp_path / "half")
    AutoModel.from_pretrained(folder).to(torch.bfloat16).save_pretrained(half)
    expected = of_transformers(half, SENTENCES)
    np.testing.assert_allclose(SentenceEncoder(half).encode(SENTENCES), expected, atol=1e-6)


def test_no_more_is_read_than_an_encoder_has_positions_for(folder: Path) -> None:
    text = ["the old dog runs " * 100]
    every, more = SentenceEncoder(folder, max_length=128), SentenceEncoder(folder, max_length=1024)
    assert np.array_equal(more.encode(text), every.encode(text))
    assert more.cut(text) == 1


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("xlnet", {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 32}),
        (
            "deberta-v2",
            {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
             "position_biased_input": False, "max_position_embeddings": 16},
        ),
    ],
)  # fmt: skip
def test_an_encoder_without_a_table_of_positions_reads_as_much_as_it_is_told(
    tmp_path: Path, kind: str, sizes: dict[str, Any]
) -> None:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone(tmp_path / "tiny", layers=1, width=16))
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=400, **sizes)).save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    long = ["the old dog runs " * 5, "the old dog runs " * 10]
    encoder = SentenceEncoder(tmp_path / kind, max_length=30)
    assert encoder.cut(long) == 1
    np.testing.assert_allclose(encoder.encode(long), of_transformers(tmp_path / kind, long, 30), atol=1e-5)


def test_words_come_from_the_pass_that_encoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States of a sentence's own tokens, special ones apart, whether they were kept or are read now."""
    from transformers import AutoModel, AutoTokenizer

    monkeypatch.setattr("trainers.encoders.frozen_encoder.PORTION", 4)
    keeping, plain = SentenceEncoder(folder, keep_words=True), SentenceEncoder(folder)
    np.testing.assert_allclose(keeping.encode(SENTENCES), plain.encode(SENTENCES), atol=1e-6)
    monkeypatch.setattr(keeping._model, "encode", None)  # from here on it cannot read
    found = keeping.words([SENTENCES[2], SENTENCES[0], SENTENCES[2]])
    assert found[0] is found[2]
    encoded = AutoTokenizer.from_pretrained(folder)(SENTENCES[2], return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**encoded).last_hidden_state
    assert found[0].ids.tolist() == encoded["input_ids"][0, 1:-1].tolist()
    torch.testing.assert_close(found[0].states, states[0, 1:-1], atol=1e-5, rtol=0)
    monkeypatch.setattr("trainers.encoders.frozen_encoder.KEPT_BYTES", 0)
    torch.testing.assert_close(plain.words(SENTENCES)[2].states, found[0].states, atol=1e-5, rtol=0)


def test_words_are_remembered_until_the_next_call_and_no_more_than_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long texts first: two of four words, then one of three takes what a third of four would exceed."""
    monkeypatch.setattr("trainers.encoders.frozen_encoder.KEPT_BYTES", (4 + 4 + 3) * 32 * 4)
    heard: list[str] = []
    keeping = SentenceEncoder(folder, keep_words=True, tell=heard.append)
    for sentences, missing in ((SENTENCES, 3), (SENTENCES[:1], 5), (SENTENCES, 3)):
        keeping.encode(sentences)
        heard.clear()
        keeping.words(SENTENCES)
        assert heard == [f"encoding texts, {missing} of {missing} done"]


def test_weights_must_be_safetensors(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CorpusError, match=r"holds no \.safetensors"):
        embed(SentenceEncoder(tmp_path), SENTENCES)


def test_scores_file_in_both_forms(tmp_path: Path) -> None:
    file = tmp_path / "scores.tsv"
    file.write_text(f"a\tb\t0.25\n{pair_sha256('c', 'd')}\t1\n")
    judge = ScoresFile(file, ("stsb",))
    assert judge.score(["c", "a"], ["d", "b"]).tolist() == [1.0, 0.25]
    with pytest.raises(CorpusError, match=r"1 of 2 pairs have no score, the first is 'b' / 'a'"):
        judge.score(["a", "b"], ["b", "a"])
    file.write_text("a\tb\t1.5\n")
    with pytest.raises(CorpusError, match=r"line 1: .*\n  accepted"):
        ScoresFile(file, ()).score(["a"], ["b"])


def test_a_file_of_scores_begins_with_a_byte_order_mark_or_not(tmp_path: Path) -> None:
    file = tmp_path / "scores.tsv"
    file.write_text("a\tb\t0.25\nc\td\t1\na\tb\t0.250\n", encoding="utf-8-sig")
    assert ScoresFile(file, ()).score(["a", "c"], ["b", "d"]).tolist() == [0.25, 1.0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a\tb\t0_1", r"line 2: 'a\\tb\\t0_1'\n  accepted: a, b, score in \[0, 1\], by tabs"),
        ("a\tb\t٠", r"line 2: .*\n  accepted: a, b, score"),
        ("a\tb\t0.9", r"line 2: 'a\\tb\\t0.9' after a score of 0.25\n  accepted: one score of a pair"),
        (f"{pair_sha256('a', 'b')}\t1", r"line 2: .* after a score of 0.25\n  accepted: one"),
    ],
)
def test_scores_that_may_mean_another_are_refused(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "scores.tsv"
    file.write_text(f"a\tb\t0.25\n{line}\n")
    with pytest.raises(CorpusError, match=said):
        ScoresFile(file, ()).score(["a"], ["b"])


def test_a_judge_is_asked_once_per_table_of_pairs(tmp_path: Path) -> None:
    file = tmp_path / "scores.tsv"
    file.write_text("a\tb\t0.25\n")
    pairs = Pairs(("0",), ("a",), ("b",), np.ones(1))
    assert scores_of(ScoresFile(file, ()), pairs).tolist() == [0.25]
    file.write_text("a\tb\t0.75\n")  # another file is another judge
    assert scores_of(ScoresFile(file, ()), pairs).tolist() == [0.75]


def cross_encoder(folder: Path, labels: int = 1) -> Path:
    """A tiny one, in folder/judge."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    backbone = tiny_backbone(folder / "tiny", layers=1, width=16)
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(backbone, num_labels=labels, initializer_range=0.5)
    model = BertForSequenceClassification(config)
    model.save_pretrained(folder / "judge")
    AutoTokenizer.from_pretrained(backbone).save_pretrained(folder / "judge")
    return folder / "judge"


def test_a_cross_encoder_reads_pairs_in_order(tmp_path: Path) -> None:
    """The sigmoid of the model's one output, as transformers gives it; symmetric is the mean of both orders."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    place = cross_encoder(tmp_path)
    a, b = SENTENCES[:3], SENTENCES[3:]
    encoded = AutoTokenizer.from_pretrained(place)(a, b, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = AutoModelForSequenceClassification.from_pretrained(place).eval()(**encoded).logits[:, 0]
    one = CrossEncoderJudge("tiny", tmp_path / "judge", ())
    forward, backward = one.score(a, b), one.score(b, a)
    both = CrossEncoderJudge("tiny", tmp_path / "judge", (), symmetric=True).score(a, b)
    np.testing.assert_allclose(forward, torch.sigmoid(logits), atol=1e-5)
    assert one.identity != CrossEncoderJudge("tiny", place, (), symmetric=True).identity
    assert not np.allclose(forward, backward)
    np.testing.assert_allclose(both, (forward + backward) / 2, atol=1e-6)


ONE_PAIR = Pairs(("0",), ("a cup",), ("a dog",), np.ones(1))


def test_a_model_without_a_trained_head_is_no_judge(folder: Path, tmp_path: Path) -> None:
    """Of an encoder, and of a classifier of three labels: none of them is scored with, nor named."""
    three = cross_encoder(tmp_path, labels=3)
    for place, found in ((folder, r"\w+"), (three, "BertForSequenceClassification with 3 labels")):
        said = rf"data\.judge = '{place}': .*config\.json says {found}\n  accepted: a cross-encoder .* one label"
        with pytest.raises(CorpusError, match=said):
            scores_of(CrossEncoderJudge(str(place), place, ()), ONE_PAIR)
        with pytest.raises(CorpusError, match=said):
            check_cross_encoder(str(place), place)


def test_a_cross_encoder_without_its_heads_weights_is_no_judge(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    judge = cross_encoder(tmp_path)
    assert scores_of(CrossEncoderJudge("whole", judge, ()), ONE_PAIR).shape == (1,)
    weights = load_file(judge / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, judge / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        CorpusError, match=r"lacks classifier\.weight\n  accepted: a cross-encoder's folder with all"
    ):
        scores_of(CrossEncoderJudge("headless", judge, ()), ONE_PAIR)


def test_a_file_of_scores_in_another_encoding_is_said(tmp_path: Path) -> None:
    file = tmp_path / "scores.tsv"
    file.write_bytes("café\tb\t0.25\n".encode("latin-1"))
    with pytest.raises(
        CorpusError, match=r"data\.scores_file: .*scores\.tsv cannot be read: .*\n  accepted: text in"
    ):
        ScoresFile(file, ()).score(["a"], ["b"])


def test_the_standin_says_what_it_is_and_prefers_what_matches(folder: Path) -> None:
    same, other = [f"the old {word} runs" for word in WORDS], [f"water in a small {word}" for word in WORDS[::-1]]
    held_out = Pairs(
        tuple(map(str, range(2 * len(WORDS)))), (*same, *same), (*same, *other), np.repeat([1.0, 0.0], len(WORDS))
    )
    judge = TokenMatchStandin(SentenceEncoder(folder), held_out)
    assert (judge.name, judge.saw) == ("token_match_standin", ("stsb",))
    features = judge.features(["the old dog"] * 2, ["the old dog", "a red cup"])
    assert features.shape == (2, 30)
    assert (features[0, :11] > features[1, :11]).all()
    scores = judge.score(["a red cup holds fire"] * 2, ["a red cup holds fire", "one person was not at home"])
    assert 0 <= scores[1] < 0.5 < scores[0] <= 1


def test_matches_of_equal_tokens_are_whole() -> None:
    """Two orthogonal tokens on one side, the first of them alone on the other; the last place is padding."""
    a = torch.tensor([[[1.0, 0], [0, 1], [9, 9]]])
    b = torch.tensor([[[1.0, 0], [9, 9], [9, 9]]])
    mask_a, mask_b = torch.tensor([[True, True, False]]), torch.tensor([[True, False, False]])
    found = match_features(a, b, mask_a, mask_b, mask_a * 3.0, mask_b * 2.0)[0]
    torch.testing.assert_close(found[:6], torch.tensor([0.5, 1, 2 / 3, 0.5, 1, 2 / 3]))
    torch.testing.assert_close(found[6:8], torch.tensor([0.0, 1.0]))  # the worst match of either side
    torch.testing.assert_close(found[9:], torch.tensor([0.0, 1.0]))


def test_wording_features_see_numbers_and_negation() -> None:
    found = wording_features("He did not buy 3 cups.", "He did buy 4 cups.")
    assert found[6:] == [1.0, 1.0]
    assert wording_features("same words", "same words") == [1, 1, 1, 0, 1, 4, 0, 0]


@pytest.mark.parametrize("keep_words", [False, True])
def test_an_encoder_says_how_far_it_is(folder: Path, keep_words: bool) -> None:
    """Of a large one, thousands of sentences take longer than a run may stand still."""
    heard: list[str] = []
    texts = [f"the {WORDS[row % len(WORDS)]} number {row}" for row in range(70)]
    rows = SentenceEncoder(folder, keep_words=keep_words, tell=heard.append).encode(texts)
    assert heard == [f"encoding texts, {done} of 70 done" for done in (32, 64, 70)]
    assert np.array_equal(rows, SentenceEncoder(folder, keep_words=keep_words).encode(texts))


def test_a_judge_says_how_far_it_is(folder: Path, tmp_path: Path) -> None:
    """The one that a study names tells what the study's encoder tells."""
    heard: list[str] = []
    encoder, place = SentenceEncoder(folder, tell=heard.append), cross_encoder(tmp_path)
    a, b = [f"the old {word} runs" for word in WORDS * 10][:70], ["water in a small cup"] * 70
    judge = judge_of(PairData(judge=str(place), judge_saw=()), encoder=encoder, resolve=Path)
    assert judge is not None
    scores = judge.score(a, b)
    assert heard == [f"judging pairs, {done} of 70 done" for done in (32, 64, 70)]
    assert np.array_equal(scores, CrossEncoderJudge("silent", place, ()).score(a, b))
    heard.clear()
    pairs = Pairs(tuple(map(str, range(70))), tuple(a), tuple(b), np.zeros(70))
    TokenMatchStandin(encoder, pairs).features(a, b)
    assert [words for words in heard if "judging" in words] == [
        f"judging pairs, {done} of 70 done" for done in (64, 70)
    ]


def test_judges_by_name(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(folder)
    assert judge_of(PairData(), encoder=encoder, resolve=Path) is None
    data = PairData(judge="org/judge", judge_saw=("stsb",), judge_symmetric=True)
    found = judge_of(data, encoder=encoder, resolve=lambda name: tmp_path / name)
    assert found == CrossEncoderJudge("org/judge", tmp_path / "org/judge", ("stsb",), True)


@pytest.fixture
def exported(tmp_path: Path, folder: Path) -> tuple[Path, Any, Any]:
    data = prepared(task(), SentenceEncoder(folder), None)
    settings = Settings(form="pair_lex", steps=40, batch_size=32, d_h=16, m=8)
    (result,) = fit_stack([(settings, 0)], [data], evaluate=lambda request, task, said, control: [said])
    export_scorer(
        tmp_path / "scorer", result.trained["toy"], data, backbone=str(folder), prompt=None, max_length=None
    )
    return tmp_path / "scorer", data, result.scores[0]


def test_an_exported_scorer_gives_the_scores_of_its_evaluation(exported: tuple[Path, Any, Any]) -> None:
    place, data, said = exported
    scorer = GatedPairScorer.load(place)
    split = data.task.evaluation
    found = scorer.score(list(zip(split.a, split.b, strict=True)))
    np.testing.assert_allclose(found, said.scores, atol=1e-5)
    assert np.abs(found - data.evaluation.anchor).max() > 1e-3  # it learned something
    assert np.abs(found - data.evaluation.anchor).max() <= 0.25 + 1e-5
    assert scorer.config["origin"]["judge"] == "none"
    assert sorted(file.name for file in place.iterdir()) == ["adapter.safetensors", "scorer.json"]


def test_a_matched_arms_scorer_has_its_own_gamma_and_no_gate(tmp_path: Path, folder: Path) -> None:
    """That with which it was trained, a share of its setting; and a later run finds it again."""
    data = prepared(task(), SentenceEncoder(folder), None)
    sizes = {"steps": 40, "batch_size": 32, "d_h": 16, "m": 8}
    settings = Settings(form="pair_ungated_matched", matched_to="pair_lex", **sizes)  # type: ignore[arg-type]
    (result,) = fit_stack([(settings, 3)], [data], evaluate=lambda request, task, said, control: [said])
    trained = result.trained["toy"]
    assert trained.model.gamma < settings.gamma
    export_scorer(tmp_path, trained, data, backbone=str(folder), prompt=None, max_length=None)
    split = data.task.evaluation
    found = GatedPairScorer.load(tmp_path).score(list(zip(split.a, split.b, strict=True)))
    np.testing.assert_allclose(found, result.scores[0].scores, atol=1e-5)
    again = load_adapter(tmp_path, settings, 3, data.x.shape[1])
    assert again.model == trained.model
    size = sum(value.numel() for value in named(trained, data.x.shape[1]).values())
    assert torch.equal(again.row[:size], trained.row[:size])


def test_reranking_puts_the_best_first(exported: tuple[Path, Any, Any]) -> None:
    scorer = GatedPairScorer.load(exported[0])
    ranked = scorer.rerank("the old dog runs", SENTENCES)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert sorted(place for place, _ in ranked) == list(range(len(SENTENCES)))
    alone = scorer.score([("the old dog runs", SENTENCES[ranked[0][0]])])
    assert ranked[0][1] == pytest.approx(float(alone[0]), abs=1e-5)
    assert scorer.score([]).shape == (0,)


def test_a_scorer_refuses_other_folders_and_widths(exported: tuple[Path, Any, Any], tmp_path: Path) -> None:
    with pytest.raises(ScorerError, match="is not a scorer"):
        GatedPairScorer.load(tmp_path)
    with pytest.raises(ScorerError, match="gives 16 numbers a text\n  accepted: 32"):
        GatedPairScorer.load(exported[0], encoder=Remote()).score([("a", "b")])


def test_a_scorer_wants_unit_rows(exported) -> None:
    scorer = GatedPairScorer.load(exported[0])
    x = np.eye(2, scorer.config["width"], dtype=np.float32)
    assert scorer.score_vectors(x, np.float16(x)).shape == (2,)
    with pytest.raises(ValueError, match="a: row 1 has length 2\n  accepted: rows of length 1"):
        scorer.score_vectors(x * [[1], [2]], x)
    with pytest.raises(ValueError, match="b: row 0 has length nan"):
        scorer.score_vectors(x, x * np.nan)


def test_only_pair_arms_can_be_exported(tmp_path: Path, folder: Path) -> None:
    data = prepared(task(), SentenceEncoder(folder), None)
    settings = Settings(form="complexity", steps=1, batch_size=32, m=8)
    (result,) = fit_stack([(settings, 0)], [data], evaluate=evaluated)
    with pytest.raises(ValueError, match="form = complexity; accepted for a scorer"):
        export_scorer(tmp_path / "x", result.trained["toy"], data, backbone="b", prompt=None, max_length=None)
