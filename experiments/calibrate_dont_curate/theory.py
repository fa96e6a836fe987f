"""P2's propositions, theorems and lemma, checked on panels small enough for exact sums.

Claim: calibrated risk falls with every judge (Prop 1), log-odds weights are Bayes' rule (Prop 2),
strictly monotone distortions change nothing (Prop 3), the error is bounded by a product in which
anti-experts count (Thm 1), a larger calibration class cannot lose in the long run (Thm 2),
weighting gains on majority as accuracies vary (Thm 3), clipped log-loss is bounded (Lemma 1). Margins:
1e-10 for exact sums, 1e-4 for Lemma 1's grid, 0.01 for a ratio in the limit, 0.005 nats for the labels
that Theorem 2 draws.
Command: judgebayes reproduce calibrate-dont-curate/theory
Runtime: seconds.
Expected: all of them hold, up to rounding. Proposition 1 is about the best predictor from all votes,
not about the one-coin score: with nine copies of a weak judge, the calibrated one-coin score of all ten
judges is worse than the one strong judge.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import Cell, Statement, graded, synthetic_row
from judgebayes.experiments.claims import Claim, claim_equal, evidence_of_units
from judgebayes.experiments.core import Output, Run, experiment, rows

EXACT, GRID, LIMIT, LABELS = 1e-10, 1e-4, 0.01, 0.005
"""Margins: exact sums, a grid of probabilities, a ratio in the limit, NLL with drawn labels."""

LARGER = Statement("the fitted larger class loses less than the margin", "paper", LABELS)
JUDGES = 8
PANELS = 200
BUDGETS = (10, 30, 100, 300, 1000)
STRONG, WEAK, COPIES = 0.85, 0.6, 9


class World(NamedTuple):
    """Every vote vector of a panel, and its probability with each label."""

    votes: Int[np.ndarray, "state judge"]
    joint: Float[np.ndarray, "state 2"]


def one_coin_world(accuracy: Float[np.ndarray, " judge"], prior: float = 0.5) -> World:
    """Return all vote vectors of independent judges with p(votes, y); p(y = 1) is the prior."""
    votes = np.array(list(product((0, 1), repeat=len(accuracy))))
    given_one = np.where(votes == 1, accuracy, 1 - accuracy).prod(1)
    given_zero = np.where(votes == 0, accuracy, 1 - accuracy).prod(1)
    return World(votes, np.stack([(1 - prior) * given_zero, prior * given_one], 1))


def value_distribution(
    joint: Float[np.ndarray, "state 2"], values: np.ndarray
) -> Float[np.ndarray, "value 2"]:
    """Return p(value, y) of a function of the votes, given its value on each state."""
    _, which = np.unique(values, axis=0, return_inverse=True)
    which = which.reshape(-1)
    return np.stack([np.bincount(which, weights=joint[:, y]) for y in (0, 1)], 1)


def oracle_risk(joint: Float[np.ndarray, "value 2"]) -> tuple[float, float]:
    """Return the smallest NLL and Brier score (of class 1) of a predictor from the value."""
    total = joint.sum(1)
    p = np.divide(joint[:, 1], total, out=np.full_like(total, 0.5), where=total > 0)
    return float(-(_xlogx(p) + _xlogx(1 - p)) @ total), float((p * (1 - p)) @ total)


def _xlogx(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


def log_odds(accuracy: Float[np.ndarray, " judge"]) -> Float[np.ndarray, " judge"]:
    """Return the weights of Prop 2, log r / (1 - r)."""
    return np.log(accuracy) - np.log1p(-accuracy)


def monotonicity(rng: np.random.Generator) -> dict[str, float]:
    """Return the margins by which Prop 1 holds over random panels and nested subsets of judges."""
    least, information, useless = np.inf, 0.0, 0.0
    for _ in range(PANELS):
        accuracy = rng.uniform(0.2, 0.95, JUDGES)
        accuracy[-1] = 0.5
        world = one_coin_world(accuracy, rng.uniform(0.2, 0.8))
        risks = np.array(
            [oracle_risk(value_distribution(world.joint, world.votes[:, :k])) for k in range(1, 9)]
        )
        steps = -np.diff(risks, axis=0)
        least = min(least, float(steps[:-1].min()))
        useless = max(useless, float(np.abs(steps[-1]).max()))
        gained = conditional_information(world, JUDGES // 2)
        lost = risks[JUDGES // 2 - 1, 0] - risks[-1, 0]
        information = max(information, abs(gained - lost))
    return {
        "least fall of the risk by one more judge": least,
        "risk change by a judge of accuracy 0.5": useless,
        "fall of NLL minus conditional mutual information": information,
    }


def conditional_information(world: World, first: int) -> float:
    """Return I(Y; the other votes | the first votes), from its definition."""
    some, every = world.votes[:, :first], world.votes
    row_of_votes = {
        tuple(v): row
        for v, row in zip(
            np.unique(some, axis=0), value_distribution(world.joint, some), strict=True
        )
    }
    total = 0.0
    for votes, row in zip(every, world.joint, strict=True):
        before = row_of_votes[tuple(votes[:first])]
        total += sum(
            p * np.log(p * before.sum() / (before[y] * row.sum()))
            for y, p in enumerate(row)
            if p > 0
        )
    return float(total)


def copies() -> dict[str, float]:
    """Return NLLs after the best possible calibration: one strong judge, nine copies of a weak one."""
    base = one_coin_world(np.array([STRONG, WEAK]))
    score = base.votes @ (log_odds(np.array([STRONG, WEAK])) * np.array([1, COPIES]))
    return {
        "strong judge alone": oracle_risk(value_distribution(base.joint, base.votes[:, :1]))[0],
        "all votes, best predictor": oracle_risk(base.joint)[0],
        "all votes, one-coin score, best monotone map": monotone_risk(base.joint, score),
    }


def monotone_risk(joint: Float[np.ndarray, "state 2"], score: Float[np.ndarray, " state"]) -> float:
    """Return the smallest NLL of a non-decreasing map of a score, by pooling adjacent violators."""
    order = np.argsort(score, kind="stable")
    blocks: list[np.ndarray] = []
    for row in joint[order]:
        blocks.append(row)
        while len(blocks) > 1 and _share(blocks[-2]) >= _share(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return oracle_risk(np.array(blocks))[0]


def _share(row: np.ndarray) -> float:
    return float(row[1] / row.sum())


def bayes_rule(rng: np.random.Generator) -> float:
    """Return the largest difference between Prop 2's log-odds and Bayes' rule, from exact sums."""
    worst = 0.0
    for _ in range(PANELS):
        accuracy, prior = rng.uniform(0.05, 0.95, JUDGES), rng.uniform(0.1, 0.9)
        world = one_coin_world(accuracy, prior)
        exact = np.log(world.joint[:, 1]) - np.log(world.joint[:, 0])
        by_weights = np.log(prior / (1 - prior)) + (2 * world.votes - 1) @ log_odds(accuracy)
        worst = max(worst, float(np.abs(exact - by_weights).max()))
    return worst


def jury(rng: np.random.Generator) -> dict[str, float]:
    """Return Theorem 1's bound minus the exact error of the Bayes decision, and error changes."""
    tightest, flipped, noise = np.inf, 0.0, 0.0
    for _ in range(PANELS):
        accuracy = rng.uniform(0.1, 0.9, JUDGES)
        error, bound = jury_error(accuracy), jury_bound(accuracy)
        tightest = min(tightest, bound - error)
        mirrored = np.where(rng.random(JUDGES) < 0.5, accuracy, 1 - accuracy)
        flipped = max(flipped, abs(jury_error(mirrored) - error))
        noise = max(noise, abs(jury_error(np.append(accuracy, 0.5)) - error))
    grown = [jury_error(np.full(n, 0.35)) for n in (3, 7, 11, 15)]
    return {
        "bound minus error, least": tightest,
        "change of the error by mirrored judges": flipped,
        "change of the error by a judge of accuracy 0.5": noise,
        "error of 3 minus error of 15 judges of accuracy 0.35": grown[0] - grown[-1],
    }


def jury_error(accuracy: Float[np.ndarray, " judge"]) -> float:
    """Return the exact error of the Bayes decision under equal priors."""
    return float(one_coin_world(accuracy).joint.min(1).sum())


def jury_bound(accuracy: Float[np.ndarray, " judge"]) -> float:
    r"""Return eq 10, :math:`\frac12 \prod_j 2 \sqrt{r_j (1 - r_j)}`."""
    return float(0.5 * np.prod(2 * np.sqrt(accuracy * (1 - accuracy))))


def exponents(excess: Float[np.ndarray, " judge"]) -> tuple[float, float]:
    """Return Hoeffding's exponents of log-odds weighting and of majority voting (Theorem 3)."""
    weight = log_odds(0.5 + excess)
    weighted = 2 * (weight @ excess) ** 2 / (weight @ weight)
    return float(weighted), float(2 * excess.sum() ** 2 / len(excess))


def expansion(rng: np.random.Generator) -> dict[str, float]:
    """Return the ratio of the gain to Theorem 3's leading term near accuracy 1/2, and the least gain."""
    ratio, least = {}, np.inf
    for size in (0.1, 0.01, 0.001):
        values = []
        for _ in range(PANELS):
            excess = size * rng.uniform(0.2, 1.0, 20)
            weighted, majority = exponents(excess)
            values.append((weighted - majority) / (2 * len(excess) * excess.var()))
            least = min(least, weighted - majority)
        ratio[f"gain over its leading term, excess up to {size:g}"] = float(np.mean(values))
    return {**ratio, "least gain": float(least)}


def nested_classes(
    rng: np.random.Generator, replicates: int
) -> dict[int, Float[np.ndarray, " replicate"]]:
    """Return by budget the excess risk of the fitted beta map over the best Platt map (Theorem 2).

    The votes are of five judges with correlated errors, so that the one-coin score is miscalibrated.
    Both maps act on this score, and the population risk is an exact sum.
    """
    accuracy = np.array([0.9, 0.75, 0.7, 0.65, 0.6])
    shared = one_coin_world(accuracy).joint * 0.5 + one_coin_world(np.full(5, 0.6)).joint * 0.5
    votes = one_coin_world(accuracy).votes
    score = (2 * votes - 1) @ log_odds(accuracy)
    log_p, log_q = -np.logaddexp(0, -score), -np.logaddexp(0, score)
    beta = np.stack([log_p, -log_q, np.ones(len(score))], 1)
    platt = np.stack([score, np.ones(len(score))], 1)
    best = _risk(platt, _logistic(platt, shared, 0.0), shared)
    losses_by_budget = {}
    for budget in BUDGETS:
        losses = []
        for _ in range(replicates):
            sampled = rng.multinomial(budget, shared.ravel()).reshape(shared.shape) / budget
            losses.append(_risk(beta, _logistic(beta, sampled, 1e-6), shared) - best)
        losses_by_budget[budget] = np.array(losses)
    return losses_by_budget


def _logistic(x: np.ndarray, joint: np.ndarray, ridge: float) -> np.ndarray:
    """Return a logistic regression fitted by Newton's method, with rows weighted by their mass."""
    theta = np.zeros(x.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        mass = joint.sum(1)
        gradient = x.T @ (mass * p - joint[:, 1]) + ridge * theta
        curvature = (x * (mass * p * (1 - p))[:, None]).T @ x + (ridge + 1e-9) * np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        theta = theta - step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-12))
    return theta


def _risk(x: np.ndarray, theta: np.ndarray, joint: np.ndarray) -> float:
    z = np.clip(x @ theta, -30, 30)
    return float(joint[:, 1] @ np.logaddexp(0, -z) + joint[:, 0] @ np.logaddexp(0, z))


def distortions(rng: np.random.Generator) -> dict[str, float]:
    """Return the changes of the best calibrated NLL by distortions of a score."""
    accuracy = rng.uniform(0.55, 0.9, JUDGES)
    world = one_coin_world(accuracy)
    score = 1 / (1 + np.exp(-(2 * world.votes - 1) @ log_odds(accuracy)))
    score = np.round(score, 12)
    own = oracle_risk(value_distribution(world.joint, score))[0]
    distorted = {
        "square": score**2,
        "root": np.sqrt(score),
        "reversed": 1 - score,
        "logit": log_odds(score),
    }
    change = {
        name: abs(oracle_risk(value_distribution(world.joint, np.round(values, 12)))[0] - own)
        for name, values in distorted.items()
    }
    rounded = oracle_risk(value_distribution(world.joint, score > 0.5))[0] - own
    return {**change, "binary (not invertible)": rounded}


def clipping(clip: float = 1e-6) -> dict[str, float]:
    """Return the margins by which Lemma 1 holds on grids of true and predicted probabilities."""
    q = np.linspace(clip, 1 - clip, 20001)
    bound = np.log(1 / clip)
    excess = float(max((-np.log(q)).max(), (-np.log1p(-q)).max()) - bound)
    misplaced = 0.0
    for truth in np.linspace(0, 1, 101):
        risk = -(truth * np.log(q) + (1 - truth) * np.log1p(-q))
        projected = np.clip(truth, clip, 1 - clip)
        misplaced = max(misplaced, abs(float(q[risk.argmin()]) - projected))
    return {"loss above its bound": excess, "minimiser off the projection": misplaced}


@experiment(
    PAPER,
    "theory",
    "Propositions 1-3, Theorems 1-3 and Lemma 1, numerically",
    "all seven statements, on panels small enough for exact sums over votes",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the margin by which each statement holds."""
    rng = np.random.default_rng(run.seed)
    one, pooled, worst, nll_changes = monotonicity(rng), copies(), bayes_rule(rng), distortions(rng)
    bound, gain, clipped = jury(rng), expansion(rng), clipping()
    by_budget = nested_classes(rng, 20 if run.smoke else 400)
    lost = {b: float(v.mean()) for b, v in by_budget.items()}
    left = evidence_of_units(LABELS - by_budget[BUDGETS[-1]], seed=run.seed)
    statements: dict[str, list[tuple[str, float, Claim | Cell | None]]] = {
        "Proposition 1": [
            (k, v, not_negative(v) if "least" in k else equal(v)) for k, v in one.items()
        ],
        "Proposition 1, copied judges": [(f"NLL, {k}", v, None) for k, v in pooled.items()],
        "Proposition 2": [("log-odds minus Bayes' rule", worst, equal(worst))],
        "Proposition 3": [
            (f"NLL change, {k}", v, None if "not" in k else equal(v))
            for k, v in nll_changes.items()
        ],
        "Theorem 1": [
            (k, v, equal(v) if "change" in k else not_negative(v)) for k, v in bound.items()
        ],
        "Theorem 2": [
            *((f"NLL lost by the fitted beta map, {b} labels", v, None) for b, v in lost.items()),
            (f"{LABELS} minus that, {BUDGETS[-1]} labels", left.estimate, Cell(LARGER, left)),
        ],
        "Theorem 3": [
            (
                k,
                v,
                not_negative(v) if "least" in k else equal(v, 1.0, LIMIT) if "0.001" in k else None,
            )
            for k, v in gain.items()
        ],
        "Lemma 1": [(k, v, not_negative(-v, GRID)) for k, v in clipped.items()],
    }
    records = [
        synthetic_row(name, *number) for name, numbers in statements.items() for number in numbers
    ]
    notes = [
        "Values are exact sums over vote vectors; only Theorem 2 draws labels.",
        f"Prop 1 is about the best predictor from all votes. The pipeline calibrates one number, the "
        f"one-coin score. One judge of accuracy {STRONG:g} and {COPIES} copies of one of {WEAK:g}: the "
        f"strong judge alone has NLL {pooled['strong judge alone']:.3f}, the best predictor from all "
        f"votes {pooled['all votes, best predictor']:.3f}, and the one-coin score of all under the best "
        f"monotone map {pooled['all votes, one-coin score, best monotone map']:.3f}. Adding judges then "
        "hurts: the proposition does not cover the pipeline.",
        f"Theorem 2 is asymptotic: with {BUDGETS[0]} labels the larger class loses "
        f"{lost[BUDGETS[0]]:.3f} nats to the smaller one's "
        f"best member, with {BUDGETS[-1]} it loses {lost[BUDGETS[-1]]:.4f} "
        "(negative: gains).",
    ]
    return Output(rows(PAPER, "theory", graded(records)), notes=notes)


def equal(value: float, to: float = 0.0, margin: float = EXACT) -> Claim:
    """Grade the statement that a number is another one."""
    return claim_equal(value, to, kind="paper", source="own", margin=margin)


def not_negative(value: float, margin: float = EXACT) -> Claim:
    """Grade the statement that a number is not below zero."""
    return equal(min(value, 0.0), margin=margin)
