"""Signs passports and checks signatures with `ssh-keygen -Y`; the signature is the file `<passport>.sig`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import cut, printable

NAMESPACE = "semray-passport"  # signatures for other purposes are refused
SECONDS = 120  # for a person to type a passphrase


def sign(passport: Path, key: Path) -> Path:
    """Sign with a private SSH key, or the public half of one that an agent holds; returns the signature's file."""
    with passport.open("rb") as content:
        result = _ssh_keygen(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key.absolute())], content.fileno())
    if result.returncode != 0:
        raise StudyError(f"{key}: cannot sign: {_last_error(result)}\n  accepted: an SSH key that you may use")
    signature = signature_of(passport)
    with written_to(signature):
        signature.write_bytes(result.stdout)
    return signature


def check_signature(passport: Path, signers: Path, who: str) -> None:
    """Raise StudyError unless `<passport>.sig` is by a key that the file of allowed signers gives this name.

    signers: lines of `name key-type key`, as in ALLOWED SIGNERS of ssh-keygen(1).
    """
    signature = signature_of(passport)
    for file, what in ((signature, "the signature beside the passport"), (signers, "a file of allowed signers")):
        if not file.is_file():
            raise StudyError(f"{file}: not found\n  accepted: {what}")
    arguments = ["-Y", "verify", "-n", NAMESPACE, "-f", str(signers.absolute()), "-I", who]
    with passport.open("rb") as content:
        result = _ssh_keygen([*arguments, "-s", str(signature.absolute())], content.fileno())
    if result.returncode != 0:
        raise StudyError(
            f"{signature}: is not a signature of {who}: {_last_error(result)}\n  accepted: one of {who}'s keys"
        )


def _ssh_keygen(arguments: list[str], content: int) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *arguments], stdin=content, capture_output=True, timeout=SECONDS)
    except FileNotFoundError:
        raise StudyError("ssh-keygen: not found\n  accepted: OpenSSH 8.2 or newer on this machine") from None
    except subprocess.TimeoutExpired:
        raise StudyError(f"ssh-keygen: no answer in {SECONDS} s\n  accepted: a key that is ready to use") from None


def _last_error(result: subprocess.CompletedProcess[bytes]) -> str:
    lines = result.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {result.returncode}"]
    return cut(printable(lines[-1]), 200)


def signature_of(passport: Path) -> Path:
    """The path of a passport's signature."""
    return passport.with_name(f"{passport.name}.sig")
