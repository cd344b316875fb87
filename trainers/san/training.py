"""Syntactically aligned negatives: one host, plain or with negatives, from a backbone to an encoder.

Method: SAN (Unsupervised Sentence Representation Learning with Syntactically Aligned Negative Samples), section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainers.san.settings import PROMPTED, TAUGHT

if TYPE_CHECKING:
    from torch import Tensor

    from corpora.san.records import SanCorpus
    from trainers.engine.loop import Encode
    from trainers.engine.world import Progress, World
    from trainers.san.batches import SanBatch
    from trainers.san.readers import Reader
    from trainers.san.settings import Settings
    from trainers.san.student import Student

Terms = Callable[["Encode", "SanBatch"], "dict[str, Tensor]"]


def read(settings: Settings, folder: Path, world: World) -> Reader:
    """The encoder of these settings, from a backbone's folder or from one that an encoder of this family saved."""
    from trainers.san.readers import opened

    return opened(settings, folder, world)


def fit(
    settings: Settings, backbone: Path, corpus: SanCorpus, seed: int, world: World
) -> tuple[Reader, list[Progress]]:
    """Train an encoder from this backbone.

    What a teacher has to say is encoded first, unless it is kept from another run. The last step's encoder is the
    result: none is chosen on development data.
    Raises ValueError when settings and backbone or corpus do not go together, BackboneError for a teacher that is
    not to be found, and Diverged.
    """
    from trainers.encoders.graphs import graphs_of
    from trainers.engine import loop
    from trainers.engine.micro_batches import MicroBatch
    from trainers.engine.optimisation import parameter_groups
    from trainers.engine.process import reset_process
    from trainers.san.batches import batches, steps_of
    from trainers.san.readers import encoder_of, reader_of
    from trainers.san.student import Student

    reset_process(seed, world)
    encoder = encoder_of(settings, backbone, world)
    micro = MicroBatch.of(settings.micro_batch, world)
    student = Student(encoder, settings, seed, micro, on_card=world.on_card)
    reader = reader_of(settings, encoder, student.head)
    steps = steps_of(settings, corpus)
    curve = loop.fit(
        student,
        terms_of(settings, student, corpus, steps, world),
        batches(settings, corpus, encoder, seed, world),
        groups=parameter_groups(
            student,
            depth=encoder.depth,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
        ),
        recipe=loop.Recipe(steps=steps, warmup=settings.warmup, clip_norm=settings.clip_norm),
        seed=seed,
        world=world,
        look=partial(world.look, reader),
        micro=micro,
        bf16_copies=encoder.bf16_copies(world.device, in_parts=micro.divides),
        graphs=graphs_of(encoder, world),
    )
    return reader, curve


def terms_of(settings: Settings, student: Student, corpus: SanCorpus, steps: int, world: World) -> Terms:
    """The loss of an arm's host, as a function of what the engine hands to it."""
    from trainers.san.hosts import rankcse, rlrd, simcse, sncse
    from trainers.san.hosts.rows import Rows
    from trainers.san.teachers import Teachers

    host: Callable[[Rows, SanBatch, Settings], dict[str, Tensor]]
    host = sncse.terms if settings.host in PROMPTED else simcse.terms
    if settings.host in TAUGHT:
        teachers = Teachers.of(settings, corpus, device=world.device, tell=world.tell)
        if settings.host == "rankcse":
            host = partial(rankcse.terms, teachers=teachers, world=world)
        else:
            host = partial(rlrd.terms, teachers=teachers, mixture=student.mixture, world=world)

    def terms(encode: Encode, batch: SanBatch) -> dict[str, Tensor]:
        states = encode(batch.views, batch.apart, batch.stream)
        return host(Rows.of(states, batch, world), batch, settings)

    return terms
