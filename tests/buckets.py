"""An object store on loopback, for tests of ledgers that lie in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def s3_bucket() -> Iterator[str]:
    """The URL of a bucket; this process and those it starts find its server by their environment."""
    moto = pytest.importorskip("moto.server", reason="moto[server,s3] and s3fs are in the extras [dev] and [s3]")
    s3fs = pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "none")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        s3fs.S3FileSystem.clear_instance_cache()  # one made before knows another endpoint
        s3fs.S3FileSystem().makedirs("bucket", exist_ok=True)  # moto remembers for as long as the process lives
        yield "s3://bucket"
    server.stop()
