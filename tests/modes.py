"""Who may read what was written: as the umask of who wrote it says, and nothing else."""

from __future__ import annotations

from pathlib import Path


def kept_from_others(folder: Path) -> list[Path]:
    """A folder and all below it, where they have another mode than a file or a folder that is made now."""
    new_file, new_folder = folder.with_name("new.file"), folder.with_name("new.folder")
    new_file.touch()
    new_folder.mkdir()
    usual = {False: new_file.stat().st_mode, True: new_folder.stat().st_mode}
    new_file.unlink()
    new_folder.rmdir()
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode != usual[path.is_dir()]]
