"""Where do small runs execute? In long-lived actors, one job after another."""
