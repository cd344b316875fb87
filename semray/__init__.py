"""The public face of semray. `semray.extending` is what a package that brings families or tasks needs, and
`semray.testing` the tests that its families pass."""
