"""The public data sets: repository, pinned commit, checksums, licence and citation of each."""

import importlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Source:
    """A public data set for `judgebayes data get`: its source and conversion."""

    name: str
    folder: str
    """The folder name of the converted data set, where experiments look for it."""
    says: str
    url: str
    commit: str
    size: str
    """The approximate size of the download."""
    licence: str
    citation: str
    drawn: str = ""
    """The choices that the source leaves open and the conversion draws, reproducibly."""

    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its path in the repository.

        They are in `sha256/NAME.txt`, in the format of `sha256sum`.
        """
        text = (
            files("judgebayes.experiments.public")
            .joinpath("sha256", f"{self.name}.txt")
            .read_text("utf-8")
        )
        lines = (line.partition("  ") for line in text.splitlines())
        return {path: digest for digest, _, path in lines}

    def convert(self, folder: Path) -> "dict[str, pd.DataFrame]":
        """Return the tables of the data set by file name, from the files of its repository."""
        module = importlib.import_module(
            f"judgebayes.experiments.public.{self.name.replace('-', '_')}"
        )
        tables: dict[str, pd.DataFrame] = module.convert(folder)
        return tables


SOURCES = {
    source.name: source
    for source in (
        Source(
            "llmbar",
            "llmbar_evaluators",
            "65 evaluators on the 419 pairs of LLMBar, in both orders, and on its other sets",
            "https://github.com/princeton-nlp/LLMBar",
            "900616bff90b6c6c8e1681f7d079250637c55992",
            "14 MB",
            "MIT",
            "Zeng, Yu, Gao, Meng, Goyal and Chen (2024): Evaluating Large Language Models at "
            "Evaluating Instruction Following. ICLR.",
        ),
        Source(
            "code-feedback",
            "beyond_consensus_feedback",
            "14 validators on feedback of 6 annotated generators to student programs",
            "https://github.com/ai-cet/llm-judge-calibration",
            "1891c4385f69368462eeb34216ba564df9a0b51e",
            "2 MB",
            "MIT",
            "Jain, Ahmed, Sahai and Leong (2025): Beyond Consensus: Mitigating the Agreeableness Bias "
            "in LLM Judge Evaluations. arXiv 2510.11822.",
        ),
        Source(
            "rb2",
            "rb2_k8_scores",
            "RewardBench 2 with 8 repeated scores of each response by 5 LLM judges",
            "https://github.com/composo-ai/llm-judge-criteria-ensembling",
            "e4049a57dc73097f899a605f5435923f03e9233c",
            "2 MB",
            "MIT (scores); the items of RewardBench 2 (ODC-BY) are not included",
            "Lail and Markham (2026): On Cost-Effective LLM-as-a-Judge Improvement Techniques. arXiv "
            "2604.13717. Malik et al. (2025): RewardBench 2. arXiv 2506.01937.",
            "which response of a pair comes first, the 1,000 pairs of each subset, and the panel's "
            "rejected responses and positions",
        ),
        Source(
            "rewardbench",
            "rewardbench_rm149",
            "149 reward models on the 2,985 pairs of RewardBench",
            "https://github.com/aims-foundations/torch_measure",
            # The files were later removed from the branch; they are in its history.
            "a2ef142eb6e5deaf61ecdebe4d38889b0729046c",
            "0.3 MB",
            "MIT (repository); RewardBench's data and results are ODC-BY",
            "Lambert et al. (2024): RewardBench: Evaluating Reward Models for Language Modeling. arXiv "
            "2403.13787.",
            "the position of the chosen response in each pair",
        ),
        Source(
            "wmt23",
            "wmt23_sxs_mqm",
            "side-by-side MQM ratings of WMT23 by people, three per pair of translations",
            "https://github.com/google/wmt-mqm-human-evaluation",
            "7fadea281aff8db61cc72fc3d469a4dca78b82a6",
            "5 MB",
            "Apache-2.0",
            "Freitag, Foster, Grangier, Ratnakar, Tan and Macherey (2021): Experts, Errors, and "
            "Context: A Large-Scale Study of Human Evaluation for Machine Translation. arXiv "
            "2104.14478.",
        ),
    )
}
"""The data sets by name."""
