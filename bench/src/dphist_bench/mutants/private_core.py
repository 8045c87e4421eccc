"""Bugs planted in the trusted core: gate, questions, noise, scores, segments, sparse releases, transcript.

Each is one that was made once, or that a tired reviewer would let pass. ``tests`` must notice.
"""

from __future__ import annotations

from typing import Any

_GATE = "src/dphist/private/gate.py"
_PRICING = "src/dphist/private/pricing.py"
_QUESTIONS = "src/dphist/private/questions.py"
_TRANSCRIPT = "src/dphist/private/transcript.py"
_SPARSE = "src/dphist/private/sparse.py"
_NOISE = "src/dphist/private/noise/"
_QUERIES = "src/dphist/private/queries/"
_SCORES = "src/dphist/private/scores/"
_DEVIATION = "src/dphist/private/segments/deviation.py"
_WIRING = "tests/private/test_wiring.py"
_DRAWN = "tests/private/test_drawn.py"
_LAWS = "tests/private/test_laws.py"
_PROMISES = "tests/private/test_promises.py"
_LAPLACE = "tests/private/test_noise_laplace.py"
_SELECTION = "tests/private/test_noise_selection.py"


def _bug(file: str, old: str, new: str, tests: str, why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    # ---- gate -----------------------------------------------------------------------------------------
    _bug(
        _PRICING,
        "return self.source.laplace(self._tied(scale), shape)",
        "return self.source.laplace(self._tied(scale) / 2, shape)",
        f"{_WIRING}::test_segment",
        "the noise of partitions is halved in the gate",
    ),
    _bug(
        _PRICING,
        "return self.source.add_laplace(values, scale * self.factor, out)",
        "return self.source.add_laplace(values, scale * self.factor * Fraction(97, 100), out)",
        f"{_WIRING}::test_measure {_DRAWN}::test_cells_and_totals_and_middles",
        "0.97 of the noise of every measurement",
    ),
    _bug(
        _PRICING,
        "return self.source.hits(cells, self._tied(scale), threshold)",
        "return self.source.hits(cells, self._tied(scale) / 2, threshold)",
        f"{_WIRING}::test_sparse",
        "the coins of empty cells have another law than the noise of occupied ones",
    ),
    _bug(
        _PRICING,
        "return whole / self.change.steps",
        "return whole",
        f"{_WIRING}::test_measure",
        "the unit is forgotten when the gate opens",
    ),
    _bug(
        _PRICING,
        "each = self.amount / draws\n",
        "each = self.amount\n",
        f"{_WIRING}::test_choose",
        "every draw of a chain pays the whole price with the same money",
    ),
    _bug(
        _PRICING,
        "return noise.select(candidates.scores, candidates.starts, rate / ranges)",
        "return noise.select(candidates.scores, candidates.starts, rate * 2 / ranges)",
        f"{_WIRING}::test_choose",
        "choices at twice their rate",
    ),
    _bug(
        _PRICING,
        "return noise.select(candidates.scores, candidates.starts, rate, ranges)",
        "return noise.select(candidates.scores, candidates.starts, rate)",
        f"{_WIRING}::test_choose_with_a_range_for_each_part",
        "ranges of parts are ignored",
    ),
    _bug(
        _GATE,
        "self._child(counts, layout, self._purse.share(share),",
        "self._child(counts, layout, self._purse,",
        f"{_WIRING}::test_measure",
        "shares of a split each get everything",
    ),
    _bug(
        _GATE,
        "            self._purse.amount,\n",
        "            self._purse.amount / self._purse.change.steps,\n",
        f"{_WIRING}::test_the_transcript_charges_what_was_spent",
        "a person of several rows is charged as one row",
    ),
    _bug(
        _PRICING,
        "noisy[here] = noise.add(exact[here], size, size)",
        "noisy[here] = noise.add(exact[here], sizes.values[0], sizes.values[0])",
        f"{_WIRING}::test_measure_with_a_scale_for_each_answer",
        "every answer gets the first scale",
    ),
    _bug(
        _GATE,
        "        if not is_proven(question):\n",
        "        if not is_proven(question) and False:\n",
        f"{_PROMISES}::test_a_question_without_a_proof_is_refused_before_it_is_paid_for",
        "any class is asked",
    ),
    _bug(
        _GATE,
        "        return own_copy(question)\n",
        "        return question\n",
        f"{_PROMISES}::test_what_is_hidden_in_the_object_is_not_asked",
        "the gate asks the author's object and not its own copy",
    ),
    _bug(
        _GATE,
        "purse, self._book, self._noise, path, self._unproven",
        "purse, self._book, self._noise, path, True",
        f"{_PROMISES}::test_no_view_loses_the_demand_for_a_proof",
        "a view of a right asks for no proof",
    ),
    _bug(
        _GATE,
        "if labels is not None and not labels_ok(labels, self._layout.parts):",
        "if False and labels is not None:",
        f"{_PROMISES}::test_labels_changed_after_the_parts_were_made_are_refused",
        "labels are trusted after they were checked",
    ),
    _bug(
        _GATE,
        "        self._check_labels()\n        labels = np.zeros",
        "        labels = np.zeros",
        f"{_PROMISES}::test_labels_changed_after_the_parts_were_made_are_refused",
        "labels are trusted where parts go two ways",
    ),
    _bug(
        _GATE,
        "            return self._right.pop()\n",
        "            return self._right[0]\n",
        "tests/private/test_gate.py::test_a_right_is_used_up_by_every_verb",
        "a right can be used twice",
    ),
    _bug(
        _GATE,
        "or np.unique(cells).size != cells.size:",
        "or False:",
        "tests/private/test_gate.py::test_wrong_labels_are_named_errors",
        "a cell can be named twice and move twice",
    ),
    _bug(
        _GATE,
        "counts = flat if within else np.clip(flat, -ceiling, ceiling)",
        "counts = flat",
        "tests/private/test_gate.py::test_huge_counts_are_cut_at_a_public_ceiling_so_that_sums_never_overflow",
        "sums overflow by the data",
    ),
    _bug(
        _GATE,
        "price.check(costs.check(layout))",
        "costs.check(layout)",
        f"{_PROMISES}::test_a_scale_that_cannot_be_drawn_is_refused_before_anything_is_used",
        "a scale that cannot be drawn is refused after the payment",
    ),
    # ---- questions ------------------------------------------------------------------------------------
    _bug(
        _QUESTIONS,
        "return type(question) in _PROVEN",
        "return isinstance(question, tuple(_PROVEN))",
        f"{_PROMISES}::test_a_subclass_of_a_proven_question_is_not_proven",
        "a subclass inherits a proof it may break",
    ),
    _bug(
        _QUESTIONS,
        "np.frombuffer(array.astype(np.int64).tobytes(), dtype=np.int64)",
        "array.astype(np.int64, copy=False).reshape(-1)",
        f"{_PROMISES}::test_a_buffer_changed_after_the_sensitivity_was_computed_has_no_effect",
        "questions share their author's buffers",
    ),
    _bug(
        _QUESTIONS,
        "not 0 <= int(self.index.min()) <= int(self.index.max()) < len(self.values)",
        "not int(self.index.max()) < len(self.values)",
        f"{_PROMISES}::test_every_answer_has_a_scale",
        "an answer with a negative index is left without noise",
    ),
    # ---- transcript -----------------------------------------------------------------------------------
    _bug(
        _TRANSCRIPT,
        "if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):",
        "if (entry.path, entry.verb, entry.question) != (path, verb, question):",
        f"{_WIRING}::test_replay_insists_on_every_part_of_an_entry",
        "replay ignores what an entry cost",
    ),
    _bug(
        _TRANSCRIPT,
        "if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):",
        "if (entry.verb, entry.question, entry.cost) != (verb, question, cost):",
        f"{_WIRING}::test_replay_insists_on_every_part_of_an_entry",
        "replay ignores where in the budget a question was asked",
    ),
    _bug(
        _TRANSCRIPT,
        "        if next(self._entries, None) is not None:\n",
        "        if False:\n",
        f"{_WIRING}::test_replay_insists_on_every_part_of_an_entry",
        "answers that nobody asked for pass",
    ),
    _bug(
        _TRANSCRIPT,
        "    return here + along + beside\n",
        "    return max(here, along, beside)\n",
        f"{_WIRING}::test_spent_adds_everything_up_whatever_a_transcript_holds",
        "what was spent does not add up",
    ),
    _bug(
        _TRANSCRIPT,
        "            memory.setflags(write=False)\n",
        "            pass\n",
        "tests/private/test_gate.py::test_published_answers_cannot_be_edited",
        "published answers can be edited",
    ),
    _bug(
        _TRANSCRIPT,
        'along = sum((spent for step, spent in children.items() if step.startswith("s")), Fraction(0))',
        'along = max((spent for step, spent in children.items() if step.startswith("s")), default=Fraction(0))',
        f"{_WIRING}::test_spent_adds_everything_up_whatever_a_transcript_holds",
        "shares of one budget are taken for disjoint cells",
    ),
    # ---- queries --------------------------------------------------------------------------------------
    _bug(
        _QUERIES + "linear.py",
        "if not ends or not rises(self.rows):",
        "if not ends:",
        f"{_PROMISES}::test_row_pointers_cannot_read_one_weight_many_times",
        "row pointers read one weight many times",
    ),
    _bug(
        "src/dphist/kernels/linear.py",
        "out[columns[place]] += abs(weights[place])",
        "out[columns[place]] += weights[place]",
        f"{_LAWS}::test_no_step_moves_a_query_further_than_its_scales tests/private/test_linear.py",
        "weights of both signs cancel in the sensitivity",
    ),
    _bug(
        _QUERIES + "medians.py",
        '"""Noise of scale one at ε = 1."""\n        return Fraction(1)\n',
        '"""Noise of scale one at ε = 1."""\n        return Fraction(1, 2)\n',
        f"{_LAWS}::test_no_step_moves_a_query_further_than_its_scales",
        "medians are noised by half of what they move",
    ),
    _bug(
        _QUERIES + "fourier.py",
        "steps = (exact + computed) / self.unit + Fraction(1001, 1000) * waves",
        "steps = (exact + computed) / self.unit * Fraction(97, 100)",
        f"{_LAWS}::test_no_step_moves_a_query_further_than_its_scales",
        "waves are noised a little less than they move",
    ),
    _bug(
        _QUERIES + "wavelet.py",
        "        out.reshape(-1)[size:] = 0\n",
        "",
        f"{_WIRING}::test_nothing_stays_behind_an_answer",
        "draws of pure noise are published in the memory behind the cells",
    ),
    _bug(
        _QUERIES + "wavelet.py",
        "            noise.add(part, scale, variance, part)\n",
        "            noise.add(part, reference, reference, part)\n",
        f"{_LAWS}::test_fused_noise_has_the_scales_that_are_stated tests/private/test_wavelet_query.py",
        "fused noise leaves out the weight of a coefficient",
    ),
    _bug(
        _QUERIES + "wavelet.py",
        "return Fraction(prod(axis.sensitivity for axis in axes))",
        "return Fraction(max(axis.sensitivity for axis in axes))",
        f"{_LAWS}::test_no_step_moves_a_query_further_than_its_scales",
        "sensitivities of axes do not multiply",
    ),
    _bug(
        "src/dphist/kernels/doubledouble.py",
        "        if a >= 2.0 * ceiling:\n            out[i] = most\n",
        "        if a >= ceiling:\n            out[i] = most\n",
        "tests/private/test_fourier_query.py::test_the_cut_is_exact_and_moves_nothing_apart",
        "the cut compares the high word only",
    ),
    # ---- scores ---------------------------------------------------------------------------------------
    _bug(
        _SCORES + "disagreements.py",
        "dtype=np.int64), 2)",
        "dtype=np.int64), 1)",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "MWEM's range is halved",
    ),
    _bug(
        _SCORES + "medians.py",
        "starts, 2)",
        "starts, 1)",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "the range of medians is halved",
    ),
    _bug(
        _SCORES + "boundaries.py",
        "tilt = 2 * ceiling * 4**refine if",
        "tilt = ceiling * 4**refine if",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "the range of squared boundaries is halved",
    ),
    _bug(
        _SCORES + "boundaries.py",
        "values = np.minimum(counts, ceiling) << refine",
        "values = counts << refine",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range tests/private/test_boundaries.py",
        "counts are not cut at the ceiling that the range is computed from",
    ),
    _bug(
        _SCORES + "bisections.py",
        "return max(1, sum(largest))",
        "return max(1, max(largest))",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "changes that pull apart are counted once",
    ),
    _bug(
        _SCORES + "bisections.py",
        "if not cuts_ok(self.first, self.middle, self.last, layout.size):",
        "if False:",
        f"{_PROMISES}::test_configurations_take_only_cuts_of_what_is_there",
        "a cut made twice takes the same errors off twice",
    ),
    _bug(
        _SCORES + "decisions.py",
        ".max(axis=2).sum(axis=1)",
        ".max(axis=2).sum(axis=1) * 2",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "scores at twice their range",
    ),
    _bug(
        _SCORES + "frequencies.py",
        "root_above((2 if len(set(self.bases)) == 1 else 4) * n * (n - 1)) / n",
        "root_above((1 if len(set(self.bases)) == 1 else 4) * n * (n - 1)) / n",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "tails of one basis are taken to move together",
    ),
    _bug(
        _SCORES + "frequencies.py",
        "(2 if len(set(self.bases)) == 1 else 4)",
        "2",
        f"{_LAWS}::test_no_step_tilts_a_score_further_than_its_range",
        "tails of two bases are taken for tails of one",
    ),
    # ---- segments -------------------------------------------------------------------------------------
    _bug(
        _DEVIATION,
        "return Fraction(self.sensitivity(length) + self.sensitivity(longest))",
        "return Fraction(self.sensitivity(longest))",
        f"{_WIRING}::test_segment {_LAWS}::test_no_step_moves_a_bucket_further_than_its_share_of_the_noise",
        "half of the noise that two costs pulling apart need",
    ),
    _bug(
        _DEVIATION,
        "            for size in np.unique(sizes):\n",
        "            for size in np.unique(sizes[sizes > 1]):\n",
        f"{_WIRING}::test_segment {_LAWS}::test_no_step_moves_a_bucket_further_than_its_share_of_the_noise",
        "single cells of trees are not noised",
    ),
    _bug(
        _DEVIATION,
        "        return 2 * self.grid - 2 * self.grid // length\n",
        "        return self.grid - self.grid // length\n",
        f"{_LAWS}::test_no_step_moves_a_bucket_further_than_its_share_of_the_noise",
        "the sensitivity of a deviation about the mean is halved",
    ),
    _bug(
        _DEVIATION,
        "        for m in range(1, shorts + 1):\n",
        "        for m in range(2, shorts + 1):\n",
        f"{_WIRING}::test_segment",
        "single cells are not noised where all buckets are tried",
    ),
    _bug(
        _DEVIATION,
        "_FINEST = 1 << 10\n",
        "_FINEST = 1 << 30\n",
        f"{_PROMISES}::test_a_grid_so_fine_that_costs_would_wrap_is_refused",
        "costs wrap on a grid too fine",
    ),
    # ---- sparse releases ------------------------------------------------------------------------------
    _bug(
        _NOISE + "hits.py",
        "    if rest:\n",
        "    if False:\n",
        f"{_DRAWN}::test_every_cell_of_a_sparse_release_has_its_coin",
        "the last block of a sparse release is never tossed: no finite ε",
    ),
    _bug(
        _SPARSE,
        "purse = Purse.of(budget, unit)",
        "purse = Purse.of(budget, Unit())",
        f"{_WIRING}::test_sparse",
        "sparse releases forget the unit",
    ),
    _bug(
        _SPARSE,
        "        noisy = noise.add_laplace(held.counts, one)\n",
        "        noisy = held.counts.copy()\n",
        f"{_WIRING}::test_sparse",
        "occupied cells are shown as they are",
    ),
    _bug(
        _SPARSE,
        "empty = hits[~_holds(held.cells, hits)]",
        "empty = hits[:0]",
        f"{_WIRING}::test_sparse",
        "only occupied cells can be shown, so that a cell betrays its record",
    ),
    _bug(
        _SPARSE,
        "excess = np.where(drawn >= 0, drawn, ~drawn)",
        "excess = np.abs(drawn)",
        f"{_WIRING}::test_sparse",
        "the excess of empty cells has another law than that of occupied ones",
    ),
    # ---- noise ----------------------------------------------------------------------------------------
    _bug(
        _NOISE + "laplace.py",
        "                        raised *= 1 + certified.geometric(self.rate * raised, keystream)\n",
        "                        pass\n",
        f"{_LAPLACE}::test_the_tail_of_the_coins_has_no_end",
        "the tail of the coins is cut off",
    ),
    _bug(
        _NOISE + "laplace.py",
        "                    noise = noise + raised if noise >= 0 else noise - raised\n",
        "                    noise = noise + raised\n",
        f"{_LAPLACE}::test_a_bit_settled_late_raises_the_magnitude",
        "late bits of negative noise are added the wrong way",
    ),
    _bug(
        _NOISE + "laplace.py",
        "            return ladder.first - certified.geometric(self.top_rate, keystream)\n",
        "            return ladder.first\n",
        f"{_LAPLACE}::test_the_tails_of_the_tables_are_memoryless",
        "the lower tail of the tables is cut off",
    ),
    _bug(
        _NOISE + "laplace.py",
        "while rate.numerator << self.bits < _BINARY_TAIL * rate.denominator:",
        "while rate.numerator << self.bits < _BINARY_TAIL * rate.denominator and self.bits < 8:",
        f"{_LAPLACE}::test_large_scales_follow_the_continuous_law",
        "noise of large scales has eight bits",
    ),
    _bug(
        _NOISE + "laplace.py",
        "        rate = self.rate * (1 << level) if level < self.bits else self.rate\n",
        "        rate = self.rate * (1 << level)\n",
        f"{_LAPLACE}::test_every_coin_closes_in_on_its_own_probability",
        "the sign of tied draws has another law",
    ),
    _bug(
        _NOISE + "certified.py",
        "            if self.prefix + 1 <= lo:\n",
        "            if self.prefix <= lo:\n",
        "tests/private/test_noise_certified.py",
        "ties are decided before they are settled",
    ),
    _bug(
        _NOISE + "certified.py",
        "    while bernoulli_exp_neg(rate, keystream):\n",
        "    if bernoulli_exp_neg(rate, keystream):\n",
        f"tests/private/test_noise_certified.py {_LAPLACE}::test_the_tails_of_the_tables_are_memoryless",
        "geometric tails end at one",
    ),
    _bug(
        _NOISE + "selection.py",
        "certified.exp_neg_interval(rate * (best - int(score)), bits)",
        "certified.exp_neg_interval(rate * (best - int(score)) / 2, bits)",
        f"{_SELECTION}",
        "choices settled late have half the rate",
    ),
    _bug(
        _NOISE + "keystream.py",
        "if stream.process != os.getpid() or stream.forks != _forks or stream.left <= 0:",
        "if stream.process == 0 or stream.left <= 0:",
        "tests/private/test_noise_keystream.py",
        "a forked process repeats its parent's noise",
    ),
]
