"""Where does it run? Pooled actors and worker groups on Ray, and what they tell while they work."""
