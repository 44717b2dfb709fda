"""Input that nobody would write, as bytes: a corpus, Hypothesis, and atheris for as long as one likes.

``make fuzz`` lets atheris look at each target; the tests here run the corpus and what Hypothesis makes of it.
"""
