"""`python -m orchestration` is the `semray` command."""

import sys

from orchestration.cli import main

sys.exit(main())
