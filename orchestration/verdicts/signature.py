"""Who stands behind a passport: an SSH signature by `ssh-keygen -Y`, beside the file as `<passport>.sig`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import cut, printable

NAMESPACE = "semray-passport"  # a signature for another purpose is none here
SECONDS = 120  # for a person to type a passphrase


def sign(passport: Path, key: Path) -> Path:
    """Sign with a private SSH key, or the public half of one that an agent holds; returns the signature's file."""
    with passport.open("rb") as content:
        made = _ssh_keygen(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key.absolute())], content.fileno())
    if made.returncode != 0:
        raise StudyError(f"{key}: cannot sign: {_said(made)}\n  accepted: an SSH key that you may use")
    signature = signature_of(passport)
    with written_to(signature):
        signature.write_bytes(made.stdout)
    return signature


def check_signature(passport: Path, signers: Path, who: str) -> None:
    """StudyError unless `<passport>.sig` is by a key that the file of allowed signers gives this name.

    signers: lines of `name key-type key`, as in ALLOWED SIGNERS of ssh-keygen(1).
    """
    signature = signature_of(passport)
    for file, what in ((signature, "the signature beside the passport"), (signers, "a file of allowed signers")):
        if not file.is_file():
            raise StudyError(f"{file}: not found\n  accepted: {what}")
    asked = ["-Y", "verify", "-n", NAMESPACE, "-f", str(signers.absolute()), "-I", who]
    with passport.open("rb") as content:
        made = _ssh_keygen([*asked, "-s", str(signature.absolute())], content.fileno())
    if made.returncode != 0:
        raise StudyError(
            f"{signature}: is not a signature of {who}: {_said(made)}\n  accepted: one of {who}'s keys"
        )


def _ssh_keygen(arguments: list[str], content: int) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *arguments], stdin=content, capture_output=True, timeout=SECONDS)
    except FileNotFoundError:
        raise StudyError("ssh-keygen: not found\n  accepted: OpenSSH 8.2 or newer on this machine") from None
    except subprocess.TimeoutExpired:
        raise StudyError(f"ssh-keygen: no answer in {SECONDS} s\n  accepted: a key that is ready to use") from None


def _said(made: subprocess.CompletedProcess[bytes]) -> str:
    lines = made.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {made.returncode}"]
    return cut(printable(lines[-1]), 200)


def signature_of(passport: Path) -> Path:
    """Where the signature of a passport lies."""
    return passport.with_name(f"{passport.name}.sig")
