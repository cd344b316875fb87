"""Stable names that a package needs to add a family or a task. Importing this module loads no torch.

from semray.extending import EncoderFamily, Task, Benchmark, Score
"""

from corpora.store.errors import CorpusError
from corpora.store.fields import Count, NotNegative, Positive, check_fields
from corpora.store.places import named_path
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from evaluators.tasks.task import Benchmark, Task, Tasks
from orchestration.families.contract import Corpus, Family, FamilyEncoder, FirstStudy, Opener, Trainer
from orchestration.families.encoder_checks import of_arm
from orchestration.families.encoders import EncoderFamily, shape_by
from search_spaces.space import Dimension
from trainers.engine.limits import Steps
from trainers.engine.streams import number, numpy_stream
from trainers.engine.world import Progress, World
from trainers.errors import TrainerError

__all__ = [
    "Benchmark",
    "Corpus",
    "CorpusError",
    "Count",
    "Dimension",
    "EncoderFamily",
    "Family",
    "FamilyEncoder",
    "FirstStudy",
    "NotNegative",
    "Opener",
    "Positive",
    "Progress",
    "Score",
    "Steps",
    "Task",
    "Tasks",
    "Trainer",
    "TrainerError",
    "World",
    "check_fields",
    "named_path",
    "number",
    "numpy_stream",
    "of_arm",
    "score_of_items",
    "shape_by",
]
