"""What is said of harnesses: cards, contracts as tests, guarantees, the league."""
