"""An object store in memory that counts requests, each as many as s3fs makes of S3, and may take its time for each.

`tests/orchestration/ledger/test_object_storage.py` holds the counts against those that a server of S3 is really
asked.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

PAGE = 1000  # keys, or folders, to one answer of a listing
_numbers = count()


class CountingStore(AbstractFileSystem):
    """Keys and contents, sorted by key. All instances see one bucket, by the name that their URL begins with."""

    protocol = "counting"
    cachable = False
    buckets: ClassVar[dict[str, dict[str, bytes]]] = {}
    asked: ClassVar[list[tuple[str, str, threading.Thread]]] = []  # kind, key or prefix, whose
    latency = 0.0  # seconds that each request takes
    _lock = threading.RLock()
    _sorted: ClassVar[dict[str, list[str]]] = {}

    # What S3 is asked

    def _ask(self, what: str, key: str) -> None:
        self.asked.append((what, key.partition("/")[2], threading.current_thread()))
        if self.latency:
            time.sleep(self.latency)

    def _bucket(self, path: str) -> tuple[dict[str, bytes], str, str]:
        bucket, _, key = self._strip_protocol(path).partition("/")
        return self.buckets.setdefault(bucket, {}), bucket, key

    def _keys(self, bucket: str, prefix: str) -> list[str]:
        """All keys that begin so, in their order."""
        with self._lock:
            if bucket not in self._sorted:
                self._sorted[bucket] = sorted(self.buckets.setdefault(bucket, {}))
            keys = self._sorted[bucket]
            begin = bisect.bisect_left(keys, prefix)
            return keys[begin : bisect.bisect_left(keys, prefix + "\U0010ffff")]

    def _listed(self, bucket: str, prefix: str, delimiter: str = "") -> list[str]:
        keys = self._keys(bucket, prefix)
        if delimiter:
            cut = len(prefix)
            keys = list(dict.fromkeys(key if "/" not in key[cut:] else key[: key.index("/", cut)] for key in keys))
        for _ in range(max(1, -(-len(keys) // PAGE))):
            self._ask("LIST", f"{bucket}/{prefix}")
        return keys

    def _put(self, path: str, content: bytes, only_new: bool = False) -> None:
        self._ask("PUT", self._strip_protocol(path))
        keys, bucket, key = self._bucket(path)
        with self._lock:
            if only_new and key in keys:
                raise FileExistsError(path)
            if key not in keys and bucket in self._sorted:
                bisect.insort(self._sorted[bucket], key)
            keys[key] = content

    def _get(self, path: str) -> bytes:
        self._ask("GET", self._strip_protocol(path))
        keys, _, key = self._bucket(path)
        try:
            return keys[key]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _forget(self, bucket: str, key: str) -> None:
        with self._lock:
            if self.buckets[bucket].pop(key, None) is not None and bucket in self._sorted:
                keys = self._sorted[bucket]
                del keys[bisect.bisect_left(keys, key)]

    @classmethod
    def forget_order(cls) -> None:
        """After a test has written into `buckets` itself."""
        cls._sorted.clear()

    @classmethod
    def of_others(cls, url: str, runs: int) -> None:
        """Runs of other studies in a ledger, each trained and scored on one task, as far as listings see them."""
        keys = cls.buckets.setdefault(url.removeprefix("counting://").partition("/")[0], {})
        for number in range(runs):
            run = f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}"
            for entry in (run, f"{run}.{run}"):
                keys[f"ledger/.entries/{run}/{entry}"] = b"{}"
                keys[f"ledger/.results/{entry}.1.0/result.json"] = b"{}"
        cls.forget_order()

    # What s3fs makes of a call

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        if options.get("max_concurrency") != 1:
            self._ask("HEAD", self._strip_protocol(path))
        return self._get(path)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        self._put(path, value, only_new=mode == "create")

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        self._put(rpath, Path(lpath).read_bytes())

    def get_file(self, rpath: str, lpath: str, **options: Any) -> None:
        Path(lpath).write_bytes(self._get(rpath))

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        self._ask("HEAD", self._strip_protocol(path1))
        keys, _, key = self._bucket(path1)
        self._put(path2, keys[key])

    def rm_file(self, path: str) -> None:
        self._ask("DELETE", self._strip_protocol(path))
        _, bucket, key = self._bucket(path)
        self._forget(bucket, key)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        if isinstance(path, str):
            found = [*self.find(path)]
            paths = found or [path]
            if not self.exists(path):
                raise FileNotFoundError(path)
        else:  # fsspec takes what looks like a pattern for one
            paths = [found for one in path for found in (self.glob(one) if has_magic(one) else [one])]
        for begin in range(0, len(paths), PAGE):
            self._ask("DELETE", self._strip_protocol(paths[begin]))
            for one in paths[begin : begin + PAGE]:
                _, bucket, key = self._bucket(one)
                self._forget(bucket, key)

    def find(
        self, path: str, maxdepth: Any = None, withdirs: bool = False, detail: bool = False, **options: Any
    ) -> Any:
        contents, bucket, key = self._bucket(path)
        prefix = options.get("prefix", "")
        found = self._listed(bucket, f"{key}/{prefix}" if key else prefix)
        if not found and key and not prefix:
            self._ask("HEAD", f"{bucket}/{key}")
            self._ask("LIST", f"{bucket}/{key}")
        with self._lock:
            infos = {
                f"{bucket}/{one}": {"name": f"{bucket}/{one}", "size": len(contents[one]), "type": "file"}
                for one in found
                if one in contents
            }
        return infos if detail else list(infos)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        contents, bucket, key = self._bucket(path)
        found = self._listed(bucket, f"{key}/" if key else "", "/")
        if not found and key:
            parent = key.rpartition("/")[0]
            siblings = self._listed(bucket, f"{parent}/" if parent else "", "/")
            found = [one for one in siblings if one == key and key in contents]
            if not found:
                raise FileNotFoundError(path)
        names = [f"{bucket}/{one}" for one in found]
        return [{"name": n, "size": 0, "type": "file"} for n in names] if detail else names

    def exists(self, path: str, **options: Any) -> bool:
        contents, bucket, key = self._bucket(path)
        self._ask("HEAD", f"{bucket}/{key}")
        return key in contents or bool(self._listed(bucket, f"{key}/"))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        contents, _, key = self._bucket(path)
        if not self.exists(path):
            raise FileNotFoundError(path)
        return {
            "name": path,
            "size": len(contents.get(key, b"")),
            "type": "file" if key in contents else "directory",
        }

    def size(self, path: str) -> int:
        return int(self.info(path)["size"])


@contextmanager
def counting_store(latency: float = 0.0) -> Iterator[str]:
    """The URL of an empty ledger in such a store."""
    fsspec.register_implementation("counting", CountingStore, clobber=True)
    bucket = f"bucket{next(_numbers)}"
    CountingStore.latency = latency
    try:
        yield f"counting://{bucket}/ledger"
    finally:
        CountingStore.latency = 0.0
        CountingStore.buckets.pop(bucket, None)
        CountingStore._sorted.pop(bucket, None)


@contextmanager
def requests() -> Iterator[list[tuple[str, str, threading.Thread]]]:
    """What the store is asked within the block: kind (LIST, GET, PUT, HEAD, DELETE), key or prefix, thread."""
    before, during = len(CountingStore.asked), list[tuple[str, str, threading.Thread]]()
    yield during
    during += CountingStore.asked[before:]
