"""`semray convert`: write a backbone's pickled weights, which no run opens, as a folder of safetensors."""

from __future__ import annotations

import json
from argparse import Namespace

from orchestration.commands.terminal import DONE
from orchestration.study.errors import StudyError
from orchestration.study.writable import new_folder


def convert(options: Namespace) -> int:
    """Write the folder, and print it with the digest by which runs identify it."""
    from trainers.encoders.backbones import BackboneError, converted_to
    from trainers.encoders.convert import convert as written

    out = new_folder(options.out or str(converted_to(options.model)))
    try:
        digest = written(options.model, out)
    except BackboneError as error:
        raise StudyError(str(error)) from None
    if options.json:
        print(json.dumps({"folder": str(out), "sha256": digest}))
        return DONE
    print(f"{out}\nsha256 {digest}")
    return DONE
