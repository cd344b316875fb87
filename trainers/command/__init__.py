"""A command of somebody's own as a training: it is started, watched and ended, and what it left is read."""
