"""What recordings can say of a population, what they bound, and what has to be assumed."""
