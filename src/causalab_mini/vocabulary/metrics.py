"""What can be scored on a read. The node that validates a metric's fields is the class that computes it.

Every metric scores one position per row, in fp32: `score` takes the rows' values as one tensor and returns one
number (or list) per row. A read over the vocabulary comes as logits [n, V]; a read that is already a distribution
(`view: probs`) comes as log-probabilities with `probs=True`, which the metrics that need raw logits refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from causalab_mini.vocabulary.metric import AnswerMetric, ComparedMetric, Metric, Needs, Scored, TopTokens
from causalab_mini.vocabulary.node import Kind, Registry

if TYPE_CHECKING:
    from torch import Tensor


class Match(AnswerMetric):
    """1 where the most likely token is the expected one."""

    keyword = "match"
    unit = "fraction"
    needs = Needs.DISTRIBUTION
    answers = ("expected",)
    formula = "argmax = expected"
    kind: Literal["match"]
    expected: str

    def score(self, scored: Scored) -> Tensor:
        """[n], 0 or 1."""
        return (scored.value.argmax(-1) == scored.tokens["expected"]).float()


class LogitDiff(AnswerMetric):
    """How much higher one token's logit is than another's."""

    keyword = "logit_diff"
    unit = "logit"
    needs = Needs.LOGITS
    answers = ("a", "b")
    formula = "logit(a) − logit(b)"
    kind: Literal["logit_diff"]
    a: str
    b: str

    def score(self, scored: Scored) -> Tensor:
        """[n], logits."""
        return scored.token("a") - scored.token("b")


class CrossEntropy(AnswerMetric):
    """The surprise at the target."""

    keyword = "cross_entropy"
    unit = "nat"
    needs = Needs.DISTRIBUTION
    answers = ("target",)
    formula = "−log p(target)"
    kind: Literal["cross_entropy"]
    target: str

    def score(self, scored: Scored) -> Tensor:
        """[n], nats."""
        return scored.value.logsumexp(-1) - scored.token("target")


class TokenLogit(AnswerMetric):
    """The raw logit of a token."""

    keyword = "token_logit"
    unit = "logit"
    needs = Needs.LOGITS
    answers = ("token",)
    formula = "logit(token)"
    kind: Literal["token_logit"]
    token: str

    def score(self, scored: Scored) -> Tensor:
        """[n], logits."""
        return scored.token("token")


class TokenLogprob(AnswerMetric):
    """The log-probability of a token."""

    keyword = "token_logprob"
    unit = "nat"
    needs = Needs.DISTRIBUTION
    answers = ("token",)
    formula = "log p(token)"
    kind: Literal["token_logprob"]
    token: str

    def score(self, scored: Scored) -> Tensor:
        """[n], nats."""
        return scored.token("token") - scored.value.logsumexp(-1)


class TokenProb(AnswerMetric):
    """The probability of a token."""

    keyword = "token_prob"
    unit = "probability"
    needs = Needs.DISTRIBUTION
    answers = ("token",)
    formula = "p(token)"
    kind: Literal["token_prob"]
    token: str

    def score(self, scored: Scored) -> Tensor:
        """[n], in [0, 1]."""
        return (scored.token("token") - scored.value.logsumexp(-1)).exp()


class TokenRank(AnswerMetric):
    """How many tokens are strictly more likely."""

    keyword = "token_rank"
    unit = "rank"
    needs = Needs.DISTRIBUTION
    answers = ("token",)
    formula = "#{v : p(v) > p(token)}"
    kind: Literal["token_rank"]
    token: str

    def score(self, scored: Scored) -> Tensor:
        """[n], 0 for the most likely token."""
        return (scored.value > scored.token("token")[:, None]).sum(-1).float()


class Entropy(Metric):
    """The entropy of the distribution."""

    keyword = "entropy"
    unit = "nat"
    needs = Needs.DISTRIBUTION
    formula = "−Σ p log p"
    kind: Literal["entropy"]

    def score(self, scored: Scored) -> Tensor:
        """[n], nats."""
        log_p = scored.value.log_softmax(-1)
        return _expected(log_p, -log_p)


class KL(ComparedMetric):
    """Kullback–Leibler divergence of the read's distribution from the other's."""

    keyword = "kl"
    unit = "nat"
    needs = Needs.DISTRIBUTION
    formula = "Σ p (log p − log q)"
    kind: Literal["kl"]

    def score(self, scored: Scored) -> Tensor:
        """[n], nats: KL(of ‖ against)."""
        log_p, log_q = scored.value.log_softmax(-1), scored.other().log_softmax(-1)
        # Never below 0 but by rounding.
        return _expected(log_p, log_p - log_q).clamp(min=0)


class JS(ComparedMetric):
    """Jensen–Shannon divergence between two distributions."""

    keyword = "js"
    unit = "nat"
    needs = Needs.DISTRIBUTION
    formula = "½KL(p‖m) + ½KL(q‖m), m = (p+q)/2"
    kind: Literal["js"]

    def score(self, scored: Scored) -> Tensor:
        """[n], nats, at most log 2."""
        log_p, log_q = scored.value.log_softmax(-1), scored.other().log_softmax(-1)
        log_m = log_p.logaddexp(log_q) - 0.6931471805599453
        return (0.5 * (_expected(log_p, log_p - log_m) + _expected(log_q, log_q - log_m))).clamp(min=0)


class Cosine(ComparedMetric):
    """The cosine between two vectors of one layout."""

    keyword = "cosine"
    unit = "cosine"
    needs = Needs.VECTOR
    formula = "x·y / (‖x‖‖y‖)"
    kind: Literal["cosine"]

    def score(self, scored: Scored) -> Tensor:
        """[n], in [−1, 1]; not finite where a vector is zero."""
        x, y = scored.value, scored.other()
        return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))


class ContinuationLogprob(Metric):
    """The log-probability of a whole continuation: of the tokens the row was fed or produced."""

    keyword = "continuation_logprob"
    unit = "nat"
    needs = Needs.CONTINUATION
    formula = "Σ log p(token k | tokens before k)"
    kind: Literal["continuation_logprob"]

    def score(self, scored: Scored) -> Tensor:
        """[n], nats."""
        each = scored.token("fed") - scored.value.logsumexp(-1)
        return each.new_tensor([float(part.sum()) for part in each.split(list(scored.lengths))])


class TopK(Metric):
    """The k most likely tokens with their probabilities."""

    keyword = "top_k"
    unit = "list"
    needs = Needs.DISTRIBUTION
    formula = "[[id, text, probability], …]"
    kind: Literal["top_k"]
    k: Annotated[int, Field(ge=1)] = 5

    def score(self, scored: Scored) -> list[TopTokens]:
        """n lists of [id, "", probability], most likely first; whoever has the tokenizer fills in the text."""
        top = scored.value.softmax(-1).topk(min(self.k, scored.value.shape[-1]), dim=-1)
        rows = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return [[[i, "", p] for i, p in zip(ids, ps, strict=True)] for ids, ps in rows]


def _expected(log_p: Tensor, x: Tensor) -> Tensor:
    """Σ p·x with 0·∞ = 0: [n, V], [n, V] → [n]."""
    p = log_p.exp()
    return (p * x.masked_fill(p == 0, 0.0)).sum(-1)


AnyMetric = Annotated[
    Match
    | LogitDiff
    | CrossEntropy
    | TokenLogit
    | TokenLogprob
    | TokenProb
    | TokenRank
    | Entropy
    | KL
    | JS
    | Cosine
    | ContinuationLogprob
    | TopK,
    Field(discriminator="kind"),
]

METRICS: Registry[Kind[Metric]] = Registry(
    "metric",
    tuple(
        Kind(node.keyword, node)
        for node in (
            Match,
            LogitDiff,
            CrossEntropy,
            TokenLogit,
            TokenLogprob,
            TokenProb,
            TokenRank,
            Entropy,
            KL,
            JS,
            Cosine,
            ContinuationLogprob,
            TopK,
        )
    ),
)
