"""Foreign recordings in, counterfactual judgement out."""
