"""The search space of the sentence_transformers family. To search by: `dev/held/…`, rows of a data set held out.

The library recommends no ranges; these are ours around its defaults. An argument of the loss moves where the arm
writes it: `loss: {name: MultipleNegativesRankingLoss, scale: 20}`.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space

SPACE: Space = (
    Dimension(name="learning_rate", low=1e-6, high=1e-3, log=True, source="ours; the library's default is 5e-5"),
    Dimension(name="per_device_train_batch_size", choices=(8, 16, 32, 64), source="ours; the default is 8"),
    Dimension(name="weight_decay", low=0.0, high=0.1, source="ours; the default is 0"),
    Dimension(
        name="lr_scheduler_type",
        choices=("linear", "cosine", "constant", "constant_with_warmup"),
        source="ours; the default is linear",
    ),
    Dimension(name="loss.scale", low=5.0, high=100.0, log=True, source="ours; the default is 20: temperature .05"),
    Dimension(name="loss.temperature", low=0.005, high=0.2, log=True, source="ours; GISTEmbedLoss has .01"),
    Dimension(name="loss.margin", low=0.01, high=10.0, log=True, source="ours; losses have 0 to 5"),
)
