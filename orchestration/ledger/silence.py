"""How long an S3 that accepts connections and says nothing is waited for: some two minutes.

Its libraries would ask 25 times: botocore five times, and s3fs each of these five times again.
"""

from __future__ import annotations

from typing import Any

ANSWER_SECONDS = 35.0  # for one answer; the library's 15 s are short for a store that is slow and works
TRIES = 3  # at a request that is not answered; others, such as `SlowDown`, are tried as often as the libraries do
RETRY = "needs-retry.s3"  # botocore's event after every try


def give_up_on_silence(client: Any) -> None:
    """Let a client of S3 raise OSError after `TRIES`, or as many as a person has set, of no answer at all.

    s3fs asks again after whatever its own library raises, but for a plain OSError.
    """
    from botocore.exceptions import ReadTimeoutError

    tries = client.meta.config.retries.get("total_max_attempts", TRIES)

    def no_more(attempts: int, caught_exception: Exception | None, **_: Any) -> None:
        if isinstance(caught_exception, ReadTimeoutError) and attempts >= tries:
            raise OSError(str(caught_exception)) from caught_exception

    client.meta.events.register_first(RETRY, no_more, unique_id=__name__)
