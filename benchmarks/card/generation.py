"""How fast a card rewrites sentences: SAN's aligned negatives by a masked language model.

It imports what it alone needs itself: where that is missing, the other sections go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from made_up import corpus

from card.bench import Bench, Figure


def generation(bench: Bench) -> Iterator[Figure]:
    """Aligned negatives by a masked language model of each shape."""
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from corpora.san.generate import Rewriter, rows
    from corpora.san.lexicon import resolver
    from corpora.san.recipe import SetRecipe
    from corpora.sources import wordnet
    from corpora.sources.wordnet_files import WordnetFiles
    from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet
    from trainers.san.masked_model import MaskedModel

    (bench.folder / "wordnet").mkdir(exist_ok=True)
    write_wordnet(bench.folder / "wordnet", small_entries(), SMALL_EXCEPTIONS)
    resolve = resolver(wordnet=wordnet.read(WordnetFiles(bench.folder / "wordnet")))
    texts = list(corpus(min(bench.sizes.sentences, 4096)).sentences[:])
    for shape in bench.sizes.shapes:
        place = bench.folder / f"{shape}-masked"
        tokenizer = AutoTokenizer.from_pretrained(
            bench.backbone(shape), local_files_only=True, trust_remote_code=False
        )
        tokenizer.save_pretrained(place)
        config = BertConfig.from_pretrained(bench.backbone(shape), trust_remote_code=False)
        BertForMaskedLM(config).save_pretrained(place)
        generator = MaskedModel.load(str(place), resolve, device=bench.device, precision=bench.precision)
        using = Rewriter(generator=generator, recipe=SetRecipe(), negate=lambda given: [""] * len(given))
        taken = bench.seconds(partial(rows, using, texts), times=1)
        yield Figure(f"aligned negatives by a masked {shape}", len(texts) / taken, "sentences a second")
