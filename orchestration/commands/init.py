"""`semray init`: write a folder with a new family that works unchanged, or a study (init_study.py)."""

from __future__ import annotations

import keyword
import re
import shlex
from argparse import Namespace
from importlib.resources import files
from pathlib import Path
from string import Template

from evaluators.tasks.mteb import PREFIX
from orchestration.commands.init_study import init_study
from orchestration.commands.terminal import DONE
from orchestration.families.registry import names
from orchestration.study.errors import StudyError, written_to
from orchestration.study.writable import check_empty, folder_fits

NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
PLACES = {  # template -> its path in the new folder; PACKAGE is the folder of the package
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "study.yaml": "study.yaml",
    "pairs.tsv": "pairs.tsv",
    "init.py": "PACKAGE/__init__.py",
    "settings.py": "PACKAGE/settings.py",
    "corpus.py": "PACKAGE/corpus.py",
    "training.py": "PACKAGE/training.py",
    "tasks.py": "PACKAGE/tasks.py",
    "family.py": "PACKAGE/family.py",
    "conftest.py": "tests/conftest.py",
    "test_family.py": "tests/test_family.py",
}


def init(options: Namespace) -> int:
    """Write the folder or the study, and print what to type next."""
    if options.what == "study":
        return init_study(options)
    folder = Path(options.path or f"semray-{options.name.replace('_', '-')}")
    write_family(options.name, folder)
    print(f"{folder} holds the family {options.name}; next:")
    print(f"  cd {shlex.quote(str(folder))}\n  pip install -e '.[test]'")
    print("  semray plan study.yaml\n  semray run study.yaml")
    print("  python -m pytest tests")
    return DONE


def write_family(name: str, folder: Path) -> None:
    """Write a package with a family of this name. StudyError if the name or the folder is taken."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise StudyError(f"init family {name}\n  accepted: small letters, digits and _, a letter first")
    taken = sorted({*names(), PREFIX.rstrip("/")})  # a family "mteb" would share the prefix of MTEB's tasks
    if name in taken:
        raise StudyError(f"init family {name}: there is one of that name\n  accepted: none of {', '.join(taken)}")
    folder_fits(folder)
    check_empty(folder)
    templates = files("orchestration.commands") / "new_family"
    for template, place in PLACES.items():
        text = Template((templates / f"{template}.tmpl").read_text(encoding="utf-8"))
        target = folder / place.replace("PACKAGE", f"semray_{name}")
        with written_to(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.substitute(name=name, slug=name.replace("_", "-")), encoding="utf-8")
