"""A backbone without a head learns to fill masks: what it learns, what stands still, and what opens the result."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from math import log
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, DistilBertConfig, DistilBertForMaskedLM

from corpora.san.lexicon import resolver
from tests.modes import kept_from_others
from tests.tiny import WORDS, tiny_backbone
from tests.trainers.masked_lm import masked_lm
from tests.trainers.tokenizers_of_every_kind import tokenizer_of
from trainers.encoders.backbones import BackboneError
from trainers.encoders.masked_lm import load_masked_lm
from trainers.encoders.tokens import tokenise
from trainers.engine.world import World
from trainers.san.masked_model import MaskedModel
from trainers.san.masked_settings import MaskedSettings, about, identity
from trainers.san.masked_training import MaskedFit, batch_of, measured, train

SENTENCES = [
    f"the {size} {kind} runs to the {place} ."
    for size in ("small", "large", "old", "young")
    for kind in ("cat", "dog", "bird", "horse", "animal")
    for place in ("house", "town", "river", "fire", "stone")
]
SETTINGS = MaskedSettings(steps=40, batch_size=32, learning_rate=1e-3, head_rate=5e-3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, MaskedFit]:
    folder = tmp_path_factory.mktemp("masked")
    backbone = tiny_backbone(folder / "tiny")
    fit = train(SETTINGS, str(backbone), SENTENCES, folder / "out", World(), name="an id")
    return backbone, folder / "out", fit


def test_it_names_words_better_than_the_most_frequent_one_does(made: tuple[Path, Path, MaskedFit]) -> None:
    _, out, fit = made
    assert fit.accuracy > 1.5 * fit.most_frequent
    assert (about(out) or {})["id"] == "an id"
    assert not out.with_name(".out.unfinished").exists()
    assert not kept_from_others(out)


def test_embeddings_stand_still_and_the_head_is_tied_to_them(made: tuple[Path, Path, MaskedFit]) -> None:
    backbone, out, _ = made
    before, missing = load_masked_lm(backbone)
    after, lacking = load_masked_lm(out)
    assert missing
    assert not lacking
    for name, tensor in before.base_model.embeddings.state_dict().items():
        assert torch.equal(tensor, after.base_model.embeddings.state_dict()[name])
    assert after.get_output_embeddings().weight is after.get_input_embeddings().weight
    moved = (before.base_model.encoder, after.base_model.encoder)
    one, other = (next(iter(layers.parameters())) for layers in moved)
    assert not torch.equal(one, other)


def test_a_first_step_from_a_new_head_moves_the_layers_by_their_rate(tmp_path: Path) -> None:
    """A head is N(0, .02²) with log frequencies of the training sentences alone, 0.1 added to each count: the words
    of those held out, 5 % of them, count as unseen."""
    own = sorted(set(WORDS))[:40]
    backbone = tiny_backbone(tmp_path / "tiny")
    settings = MaskedSettings(steps=1, batch_size=16, learning_rate=3e-3, head_rate=1e-9)
    fit = train(settings, str(backbone), [f"{word} {word}" for word in own], tmp_path / "out", World())
    before, after = load_masked_lm(backbone)[0], load_masked_lm(tmp_path / "out")[0]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    share = after.get_output_embeddings().bias.detach().double().exp()
    assert share.sum().item() == pytest.approx(1, abs=1e-5)
    of_words = share[tokenizer.convert_tokens_to_ids(own)].sort().values
    smoothed = len(share) * 0.1 + 2 * (len(own) - 2)
    assert of_words.tolist() == pytest.approx([0.1 / smoothed] * 2 + [2.1 / smoothed] * (len(own) - 2), rel=1e-4)
    assert share[tokenizer.cls_token_id].item() == pytest.approx(0.1 / smoothed, rel=1e-4)
    assert fit.sentences == 2
    drawn = after.cls.predictions.transform.dense.weight.std().item()
    assert drawn == pytest.approx(after.config.initializer_range, rel=0.1)
    moved = [
        (now - was).abs().max().item()
        for now, was in zip(
            after.base_model.encoder.parameters(), before.base_model.encoder.parameters(), strict=True
        )
    ]
    assert max(moved) == pytest.approx(3e-3, rel=0.01)


def test_masks_of_a_step(tmp_path: Path) -> None:
    """30 to 50 % of the words, at most 400 of 1,024 tokens, never a special token; each sentence once an epoch."""
    backbone = tiny_backbone(tmp_path / "tiny")
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    for length, most in ((3, 0.5), (30, 400 / 1024 * 32 / 30)):  # two of 32 tokens are special and never masked
        texts = [" ".join([word] * length) for word in sorted(set(WORDS))[:40]]
        tokens = tokenise(tokenizer, texts, 64)
        settings = MaskedSettings(batch_size=10)
        seen, shares = [], []
        for step in range(80):
            batch = batch_of(tokens, tokenizer, settings, step, device="cpu")
            ids, where = batch.ids.flatten().clone(), batch.where
            assert (ids[where] == tokenizer.mask_token_id).all()
            assert not torch.isin(batch.words, torch.tensor(tokenizer.all_special_ids)).any()
            ids[where] = batch.words
            seen += [tuple(row.tolist()) for row in ids.view_as(batch.ids)]
            shares.append(len(where) / (10 * length))
            assert torch.equal(batch.attended == 1, batch.ids != tokenizer.pad_token_id)
        epochs = [seen[begin : begin + 40] for begin in range(0, len(seen), 40)]
        assert all(sorted(epoch) == sorted(map(tuple, tokenizer(texts)["input_ids"])) for epoch in epochs)
        assert epochs[0] != epochs[1]
        assert min(shares) == pytest.approx(0.3, abs=0.03)
        assert max(shares) == pytest.approx(most, abs=0.02)
        assert len(set(shares)) > 5


class Unigram(torch.nn.Module):
    """Says the same of every masked place."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, ids: torch.Tensor, attended: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(where), -1)


def test_the_figures_of_a_fit_are_means_over_masked_words(tmp_path: Path) -> None:
    """Of a model that always says "the", four times as likely as any other word: 2 of the 8 words of every sentence
    are, which is its accuracy and the share of the most frequent word."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone(tmp_path / "tiny"))
    tokens, size = tokenise(tokenizer, SENTENCES, 64), len(tokenizer)
    logits = torch.zeros(size, dtype=torch.float64)
    logits[tokenizer.convert_tokens_to_ids("the")] = log(4)
    fit = measured(Unigram(logits), tokens, tokenizer, SETTINGS, device="cpu")  # type: ignore[arg-type]
    assert fit.sentences == len(SENTENCES)
    assert 0.3 * 8 * len(SENTENCES) * 0.9 < fit.targets < 0.5 * 8 * len(SENTENCES)
    assert fit.accuracy == fit.most_frequent == pytest.approx(2 / 8, abs=0.08)
    assert fit.loss == pytest.approx(log(size + 3) - fit.accuracy * log(4), abs=1e-9)


def test_the_result_generates_and_training_again_gives_the_same_weights(
    made: tuple[Path, Path, MaskedFit], tmp_path: Path
) -> None:
    backbone, out, fit = made
    assert train(SETTINGS, str(backbone), SENTENCES, tmp_path / "again", World()) == fit
    weights = [folder / "model.safetensors" for folder in (out, tmp_path / "again")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    model = MaskedModel.load(str(out), resolver(), device="cpu")
    assert len(model.encode(["the cat runs"], 8)[0].ids) == 3


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.trainers.san.test_masked_training import SENTENCES, SETTINGS
from trainers.engine.world import World
from trainers.san import masked_training
masked_training.CHECKPOINT_EVERY = 15
def report(progress):
    if progress.step == 20:
        os.kill(os.getpid(), signal.SIGKILL)
masked_training.train(SETTINGS, sys.argv[1], SENTENCES, Path(sys.argv[2]), World(report=report), name="an id")
"""


def test_a_killed_training_goes_on_to_the_same_weights(made: tuple[Path, Path, MaskedFit], tmp_path: Path) -> None:
    """From its last checkpoint; a training of another name, in its place, begins at the beginning."""
    backbone, out, fit = made
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(backbone), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    shutil.copytree(tmp_path / ".out.unfinished", tmp_path / ".other.unfinished")
    for place, name, first in (("out", "an id", 16), ("other", "another id", 1)):
        steps: list[int] = []
        world = World(report=lambda progress, steps=steps: steps.append(progress.step))
        assert train(SETTINGS, str(backbone), SENTENCES, tmp_path / place, world, name=name) == fit
        assert steps == list(range(first, 41))
        weights = [folder / "model.safetensors" for folder in (out, tmp_path / place)]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert not (tmp_path / f".{place}.unfinished").exists()


def test_an_id_is_of_all_that_changes_the_weights() -> None:
    ids = {
        identity(settings, backbone, sentences, precision)
        for settings in (SETTINGS, MaskedSettings())
        for backbone in ("a", "b")
        for sentences in ("s", "t")
        for precision in ("fp32", "bf16")
    }
    assert len(ids) == 16


def test_a_head_that_a_backbone_has_is_trained_further(tmp_path: Path) -> None:
    """It is not drawn anew: at rates of almost nothing it stays what it was."""
    backbone = masked_lm(tmp_path / "bert", "bert")
    settings = MaskedSettings(steps=1, batch_size=16, learning_rate=1e-9, head_rate=1e-9)
    train(settings, str(backbone), SENTENCES, tmp_path / "out", World())
    before, after = (load_masked_lm(folder)[0].state_dict() for folder in (backbone, tmp_path / "out"))
    assert any(name.startswith("cls") for name in before)
    assert all(torch.allclose(after[name], value, atol=1e-7) for name, value in before.items())


def test_a_backbone_that_fills_no_masks(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="no such folder"):
        train(SETTINGS, str(tmp_path / "missing"), SENTENCES, tmp_path / "out", World())
    with pytest.raises(ValueError, match=r"--sentences: 1 of them"):
        train(SETTINGS, str(tiny_backbone(tmp_path / "tiny")), SENTENCES[:1], tmp_path / "out", World())
    tokenizer_of("bpe-untrimmed").save_pretrained(masked_lm(tmp_path / "maskless", "bert"))
    elsewhere = masked_lm(tmp_path / "elsewhere", "bert")
    shape = DistilBertConfig(vocab_size=400, dim=32, hidden_dim=64, n_layers=1, n_heads=4)
    DistilBertForMaskedLM(shape).save_pretrained(elsewhere)
    weights = masked_lm(tmp_path / "part", "bert") / "model.safetensors"
    save_file({name: one for name, one in load_file(weights).items() if "layer.1" not in name}, weights)
    for folder, says in (
        ("maskless", "its tokenizer has no mask token"),
        ("elsewhere", "a DistilBertForMaskedLM, whose head is not where"),
        ("part", r".*part lacks bert\.encoder\.layer\.1\..*\n  accepted: a whole backbone"),
    ):
        with pytest.raises(BackboneError, match=rf"--backbone .*{folder}: {says}"):
            train(SETTINGS, str(tmp_path / folder), SENTENCES, tmp_path / "out", World())
        assert not (tmp_path / "out").exists()
