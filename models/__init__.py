"""The generative models, one NumPyro story per file, to be read beside the papers.

Import them as ``judgebayes.models``: a second name would make a second copy of every class.
They may import no other part of the library.
"""
