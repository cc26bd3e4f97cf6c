"""Pre-registered claims about tail shapes: the plan, its registration, five gates, two criteria."""
