"""Small models that a config shapes: width, depth, activation, normalisation, residual paths, dropout.

The output layer is called `head` in all of them: optimizers that treat it apart find it by that name.
"""
