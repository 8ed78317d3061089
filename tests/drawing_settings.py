"""Draws documents with generation settings and with samples."""

from __future__ import annotations

from tests.drawing import Draw


class Settled(Draw):
    """A document whose rows go on by settings and draws.

    `said` are tokens, two or more, that rows say after each other where nothing is set, so that a ban of them is felt;
    `own` are the settings of the checkpoint, which it asks for now and then; `ends` end a text.
    """

    lengths = (2, 3, 3, 4)

    def __init__(
        self, seed: int, depth: int, said: list[list[int]], ends: list[int], own: dict[str, object] | None = None
    ) -> None:
        super().__init__(seed, depth)
        self.said, self.ends, self.own = said, ends, own or {}
        self.weakest: dict[str, object] | str = self.settings(2)
        if self.own and self.random.random() < 0.3:
            self.weakest = "checkpoint"

    def document(self) -> dict:
        document = super().document()
        document["model"]["generation"] = self.weakest
        return document

    def intervention(self, name: str, refs: list[str]) -> dict:
        body = super().intervention(name, refs)
        if not self.decode:
            return body
        body["generation"] = self.settings(3)
        weaker = self.own if isinstance(self.weakest, str) else self.weakest
        taken = [key for key in weaker if key != "eos_token_id"]
        if isinstance(body["decode"], dict) and "force" in body["decode"]:
            body["generation"] = dict.fromkeys(taken)
        elif taken and self.random.random() < 0.4:
            body["generation"].setdefault(self.random.choice(taken), None)
        if "exponential_decay_length_penalty" in {**weaker, **body["generation"]}:
            # Of infinities that were made finite it makes infinities again.
            body["generation"]["remove_invalid_values"] = None
        return body

    def going_on(self) -> int | dict:
        if not self.decode or self.random.random() < 0.2:
            return super().going_on()
        decode: dict = {"steps": self.decode, "eos": self.random.choice(["hold", "stop"])}
        if self.random.random() < 0.7:
            decode["sample"] = self.sample()
        return decode

    def sample(self) -> dict:
        pick = self.random
        limits = {
            "temperature": pick.choice([0.4, 1.0, 2.5]),
            "top_k": pick.choice([1, 2, 5, 40]),
            "top_p": pick.choice([0.1, 0.3, 0.6, 0.9]),
            "min_p": pick.choice([0.0, 0.05, 0.4]),
        }
        return {
            "seed": pick.randrange(9),
            **{key: limits[key] for key in pick.sample(sorted(limits), pick.randint(1, 3))},
        }

    def settings(self, most: int) -> dict[str, object]:
        """Some settings, each so that it is felt on some rows."""
        pick = self.random
        run = pick.choice(self.said)
        at = pick.randrange(len(run) - 1)
        pair, one, end = run[at : at + 2], pick.choice(run), pick.choice(self.ends)
        found: dict[str, object] = {
            "repetition_penalty": pick.choice([1.3, 4.0, 0.5, 0.2]),
            "encoder_repetition_penalty": pick.choice([0.7, 2.0, 5]),
            "no_repeat_ngram_size": pick.choice([1, 2]),
            "encoder_no_repeat_ngram_size": pick.choice([1, 2]),
            "suppress_tokens": sorted({one, *pair}),
            "begin_suppress_tokens": run[:1],
            "bad_words_ids": [pair, [one], [end]],
            "sequence_bias": [[pair, -20.0], [[one], pick.choice([-1.5, 4.0])]],
            "min_length": pick.randint(6, 20),
            "min_new_tokens": pick.randint(1, 3),
            "forced_eos_token_id": pick.choice([end, one, [end]]),
            "exponential_decay_length_penalty": [pick.randrange(2), pick.choice([1.5, 6.0])],
            "remove_invalid_values": True,
            "renormalize_logits": True,
            "watermarking_config": {
                "bias": pick.choice([1.0, 6.0]),
                "seeding_scheme": pick.choice(["lefthash", "selfhash"]),
            },
        }
        if pick.random() < 0.7:
            # It takes its time.
            found.pop("watermarking_config")
        return {key: found[key] for key in pick.sample(sorted(found), pick.randint(1, most))}
