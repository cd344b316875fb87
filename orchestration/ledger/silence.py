"""Limits the wait for an S3 server that accepts connections and never answers to some two minutes.

By default its libraries try 25 times: botocore five times, and s3fs each of these five times again.
"""

from __future__ import annotations

from typing import Any

ANSWER_SECONDS = 35.0  # wait for one answer; the library's 15 s are too short for a slow store
TRIES = 3  # for a request without an answer; errors such as `SlowDown` are retried as the libraries do
RETRY = "needs-retry.s3"  # botocore's event after every try


def give_up_on_silence(client: Any) -> None:
    """Make an S3 client raise OSError after `TRIES` requests without an answer, or as many as its settings say.

    A plain OSError is the only exception after which s3fs does not try again.
    """
    from botocore.exceptions import ReadTimeoutError

    tries = client.meta.config.retries.get("total_max_attempts", TRIES)

    def no_more(attempts: int, caught_exception: Exception | None, **_: Any) -> None:
        if isinstance(caught_exception, ReadTimeoutError) and attempts >= tries:
            raise OSError(str(caught_exception)) from caught_exception

    client.meta.events.register_first(RETRY, no_more, unique_id=__name__)
