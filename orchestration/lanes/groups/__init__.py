"""Where do large runs execute? In Ray Train worker groups, one for each run."""
