"""Embeddings of texts, whose means P3 uses to compare data sets (its eq 13)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError

Embedding = Float[np.ndarray, "item feature"]


def mean_embeddings(embeddings: Sequence[np.ndarray]) -> Float[np.ndarray, "set feature"]:
    """Return the mean embedding of each data set.

    Raises
    ------
    JudgeBayesError
        If a data set has no embedding, or the embeddings differ in length.
    """
    shapes = [np.shape(e) for e in embeddings]
    if not shapes or any(len(s) != 2 or s[0] == 0 or s[1] != shapes[0][-1] for s in shapes):
        raise JudgeBayesError(
            f"The embeddings have the shapes {shapes}; each data set needs "
            "(items, features), with the same features."
        )
    return np.stack([np.asarray(e, float).mean(0) for e in embeddings])


def tfidf_embeddings(texts: Sequence[Sequence[str]]) -> list[Embedding]:
    """Return the TF-IDF vectors of the texts of each data set, over their common vocabulary.

    This is the default, which needs no download: words in lower case, with sublinear term counts.

    Raises
    ------
    JudgeBayesError
        If a data set has no text, or the texts contain no word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    empty = [index for index, set_texts in enumerate(texts) if len(set_texts) == 0]
    if empty or not texts:
        raise JudgeBayesError(
            f"Data set {empty[0] if empty else 0} has no text; each data set needs at least one."
        )
    all_texts = [text for set_texts in texts for text in set_texts]
    try:
        matrix = TfidfVectorizer(sublinear_tf=True).fit_transform(all_texts)
    except ValueError as error:
        raise JudgeBayesError("The texts contain no word to compare.") from error
    ends = np.cumsum([len(set_texts) for set_texts in texts])[:-1]
    return np.split(matrix.toarray(), ends)


def sentence_embeddings(texts: Sequence[Sequence[str]], model: str) -> list[Embedding]:
    """Return embeddings from a sentence-transformers model, by its name in that library.

    The paper uses NV-Embed-v2. Embeddings can also be passed as arrays.

    Raises
    ------
    JudgeBayesError
        If sentence-transformers is not installed.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise JudgeBayesError(
            "sentence-transformers is not installed: pip install 'judgebayes[embeddings]', or pass "
            "embeddings as arrays, or use tfidf_embeddings."
        ) from error
    encoder = SentenceTransformer(model)
    return [np.asarray(encoder.encode(list(set_texts)), float) for set_texts in texts]
