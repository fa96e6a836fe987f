"""The generative models, one NumPyro program per file, to be read with the papers.

Import them as ``judgebayes.models``: a second name would make a second copy of every class.
They may import no other part of the library.
"""
