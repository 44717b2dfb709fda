"""What the scenario library covers, and what it can tell apart."""
