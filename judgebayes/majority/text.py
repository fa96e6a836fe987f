"""Texts as vectors: the mean embedding by which P3 compares data sets (its eq 13)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError

__all__ = ["mean_embeddings", "sentence_embeddings", "tfidf_embeddings"]

Embedding = Float[np.ndarray, "item feature"]


def mean_embeddings(embeddings: Sequence[np.ndarray]) -> Float[np.ndarray, "set feature"]:
    """Return the mean embedding of each data set.

    Raises
    ------
    JudgeBayesError
        If a data set has no embedding, or they differ in length.
    """
    shapes = [np.shape(e) for e in embeddings]
    if not shapes or any(len(s) != 2 or s[0] == 0 or s[1] != shapes[0][-1] for s in shapes):
        raise JudgeBayesError(
            f"The embeddings have the shapes {shapes}; right would be (items, features) for each "
            "data set, with the same features."
        )
    return np.stack([np.asarray(e, float).mean(0) for e in embeddings])


def tfidf_embeddings(texts: Sequence[Sequence[str]]) -> list[Embedding]:
    """Return the TF-IDF vectors of the texts of each data set, over their common vocabulary.

    The default: it needs no download. Words, lower case; sublinear term counts.

    Raises
    ------
    JudgeBayesError
        If a data set has no text, or the texts hold no word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    empty = [place for place, own in enumerate(texts) if len(own) == 0]
    if empty or not texts:
        raise JudgeBayesError(
            f"Data set {empty[0] if empty else 0} has no text; right would be one or more each."
        )
    every = [text for own in texts for text in own]
    try:
        found = TfidfVectorizer(sublinear_tf=True).fit_transform(every)
    except ValueError as error:
        raise JudgeBayesError("The texts hold no word to compare them by.") from error
    ends = np.cumsum([len(own) for own in texts])[:-1]
    return np.split(found.toarray(), ends)


def sentence_embeddings(texts: Sequence[Sequence[str]], model: str) -> list[Embedding]:
    """Return embeddings by a sentence-transformers model, named as that library names it.

    The paper uses NV-Embed-v2. Any embeddings can also be given as arrays.

    Raises
    ------
    JudgeBayesError
        If sentence-transformers is not installed.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise JudgeBayesError(
            "sentence-transformers is not installed: pip install 'judgebayes[embeddings]', or give "
            "embeddings as arrays, or use tfidf_embeddings."
        ) from error
    encoder = SentenceTransformer(model)
    return [np.asarray(encoder.encode(list(own)), float) for own in texts]
