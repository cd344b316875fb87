"""`python -m orchestration` is the `semray` command."""

import sys

from orchestration.commands.cli import main

sys.exit(main())
