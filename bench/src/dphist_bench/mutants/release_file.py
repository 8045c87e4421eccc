"""Mutants of the file, of verification and of replay: what would let a forged or talkative file pass."""

_FILE = "src/dphist/release/file.py"
_DESCRIPTION = "src/dphist/release/description.py"
_ATOMIC = "src/dphist/release/atomic.py"
_SPARSE = "src/dphist/release/sparse_file.py"
_CONTENTS = "src/dphist/release/contents.py"
_RELEASE = "src/dphist/release/release.py"
_REPLAYED = "src/dphist/release/replayed.py"
_TRANSCRIPT = "src/dphist/private/transcript.py"
_CHECKING = "src/dphist/publishing/checking.py"
_F = "tests/door/test_forgers.py"
_R = "tests/door/test_release.py"
_FORGED = (_F, "-k", "what_was_forged or with_any")
_SPARSELY = (_F, "-k", "sparse")
_LEDGER = (_F, "-k", "invented")
_CHOSEN = ("tests/door/test_named_choice.py", "-k", "plane or reading or words or reason")

MUTANTS = [
    dict(
        file=_REPLAYED,
        old="            replay.finish()\n",
        new="",
        tests=_FORGED,
        why="verify without finish: the true counts as one more answer verify",
    ),
    dict(
        file=_RELEASE,
        old="        if self.transcript.spent() > self._own_budget.amount:",
        new="        if self.transcript.spent() > 2 * self._own_budget.amount:",
        tests=(_R, "-k", "verify_accepts"),
        why="twice the budget verifies",
    ),
    dict(
        file=_RELEASE,
        old="        if not self.cells.same(cells, exact=exact):",
        new="        if self.cells is None:",
        tests=_FORGED,
        why="other counts verify",
    ),
    dict(
        file=_RELEASE,
        old="            cells = cells.polish(step)",
        new="            cells = self.cells",
        tests=(_F, "-k", "polish"),
        why="a polished release is not compared with its replay",
    ),
    dict(
        file=_RELEASE,
        old="            if mended(said) != mended(self._estimate.note):",
        new="            if said is None:",
        tests=_FORGED,
        why="a note that nobody paid for verifies",
    ),
    dict(
        file=_RELEASE,
        old="        if choice:\n            check_choice(self)\n",
        new="",
        tests=_CHOSEN,
        why="whatever somebody chose by hand passes for the rule's choice",
    ),
    dict(
        file="src/dphist/mechanisms/auto.py",
        old="        mechanism, reason = self.chosen, None\n",
        new="        mechanism, reason = None, None\n",
        tests=_CHOSEN,
        why="a replay chooses again",
    ),
    dict(
        file="src/dphist/mechanisms/auto.py",
        old="        return self.why if plain and mended(self.why).endswith(mended(end)) else note",
        new="        return self.why",
        tests=_CHOSEN,
        why="a release may say of its choice whatever it likes",
    ),
    dict(
        file=_REPLAYED,
        old="            workload=self.workload,\n",
        new="",
        tests=(_F, "-k", "workload"),
        why="a release replays without its workload",
    ),
    dict(
        file="src/dphist/release/cells.py",
        old="isinstance(other, DenseCells) and alike(self.counts, other.counts, exact=exact)",
        new="isinstance(other, DenseCells) and np.allclose(self.counts, other.counts, atol=2)",
        tests=_FORGED,
        why="counts that are near enough verify",
    ),
    dict(
        file="src/dphist/release/guarantee.py",
        old='        said = f"{self.budget.describe()} for {self.unit.describe()}"',
        new='        said = f"{self.budget.describe()} for {Unit().describe()}"',
        tests=("tests/door/test_every_door.py", "-k", "dense and not Spark"),
        why="the guarantee names the wrong unit",
    ),
    dict(
        file=_TRANSCRIPT,
        old="        if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):",
        new="        if (entry.path, entry.verb, entry.question) != (path, verb, question):",
        tests=_FORGED,
        why="replay ignores an entry's ε",
    ),
    dict(
        file=_TRANSCRIPT,
        old="        if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):",
        new="        if (entry.path, entry.verb, entry.cost) != (path, verb, cost):",
        tests=_FORGED,
        why="replay ignores what was asked",
    ),
    dict(
        file=_TRANSCRIPT,
        old="        if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):",
        new="        if (entry.verb, entry.question, entry.cost) != (verb, question, cost):",
        tests=_FORGED,
        why="replay ignores where in the budget it was asked",
    ),
    dict(
        file=_TRANSCRIPT,
        old='    along = sum((spent for step, spent in children.items() if step.startswith("s")), Fraction(0))',
        new='    along = max((spent for step, spent in children.items() if step.startswith("s")), default=Fraction(0))',
        tests=("tests/private/test_gate.py", "tests/uses/test_classify.py", "-m", "not slow"),
        why="questions about the same cells count once",
    ),
    dict(
        file=_TRANSCRIPT,
        old="            if not self._done:\n                self._pay()\n                self._done = True",
        new="            if not self._done:\n                self._done = True\n                self._pay()",
        tests=("tests/door/test_payment_is_owed.py",),
        why="a payment that failed is forgotten",
    ),
    dict(
        file=_FILE,
        old="            _check(file, place, description, release)\n",
        new="",
        tests=_FORGED,
        why="a file may hold more than its release",
    ),
    dict(
        file=_FILE,
        old="    check_labels(file, release.domain, [(c.name, c.axis, v) for c, v in zip(labels, values, strict=True)])\n",
        new="",
        tests=_FORGED,
        why="labels may be exchanged",
    ),
    dict(
        file=_FILE,
        old="    check_bytes(file, path)\n",
        new="",
        tests=(_F, "-k", "bytes"),
        why="bytes may hide between the columns",
    ),
    dict(
        file=_FILE,
        old="    check_description(description, known)\n",
        new="",
        tests=_FORGED,
        why="the description may say more than it should",
    ),
    dict(
        file=_DESCRIPTION,
        old="b64decode(text, validate=True)",
        new="b64decode(text)",
        tests=_FORGED,
        why="junk may hide in an answer's text",
    ),
    dict(
        file=_DESCRIPTION,
        old='guarantee.budget.to_json() | {"unit": guarantee.unit.to_json()}',
        new='guarantee.budget.to_json() | {"unit": Unit().to_json()}',
        tests=(_R, _F, "-k", "saved_and_loaded or invented"),
        why="the file promises something to somebody else",
    ),
    dict(
        file=_DESCRIPTION,
        old="        budget.currency: str(entry.cost),\n",
        new="        budget.currency: str(entry.cost / 2),\n",
        tests=(_R, "-k", "saved_and_loaded"),
        why="the file halves its prices",
    ),
    dict(
        file=_FILE,
        old="        if answer.size == flat.size and _equal(answer, flat):",
        new="        if answer.size == flat.size:",
        tests=(_F, "-k", "transcript"),
        why="an answer is taken from the estimate though it differs",
    ),
    dict(
        file=_ATOMIC,
        old="            os.fsync(file.fileno())\n        # mkstemp",
        new="            file.fileno()\n        # mkstemp",
        tests=("tests/faults/test_power_cut.py", _R),
        why="the name may reach the disk before the data",
    ),
    dict(
        file=_ATOMIC,
        old="        temporary.replace(path)\n",
        new="        path.write_bytes(temporary.read_bytes())\n",
        tests=("tests/faults/test_power_cut.py", _R),
        why="a crash leaves half a release",
    ),
    dict(
        file=_FILE,
        old="    if not isinstance(version, int) or version > FORMAT:",
        new="    if not isinstance(version, int):",
        tests=(_R, "-k", "newer"),
        why="a newer format is read as if it were this one",
    ),
    dict(
        file=_CONTENTS,
        old='if name not in (key, b"ARROW:schema")}, words)',
        new='if name not in (key, b"ARROW:schema", b"remark")}, words)',
        tests=_FORGED,
        why="a remark in the metadata passes",
    ),
    dict(
        file=_CONTENTS,
        old="            check_description(value, known[name])",
        new="            check_description(value, value)",
        tests=_FORGED,
        why="unknown keys below the first level pass",
    ),
    dict(
        file=_CONTENTS,
        old="            wanted, done = along(codes, strides[axis], begin, end), 0",
        new="            wanted, done = along(codes, strides[axis], begin, end) * 0, 0",
        tests=(_R, "-k", "saved_and_loaded"),
        why="right labels are refused",
    ),
    dict(
        file=_SPARSE,
        old='            raise ReleaseError("a label does not belong to its cell")',
        new="            break",
        tests=_SPARSELY,
        why="labels of sparse cells may be exchanged",
    ),
    dict(
        file=_SPARSE,
        old="    check_schema(file, table.schema, key, words)\n",
        new="",
        tests=_SPARSELY,
        why="a sparse file may hold more columns",
    ),
    dict(
        file=_SPARSE,
        old="    check_description(description, known)\n",
        new="",
        tests=_SPARSELY,
        why="a sparse file's description may say more",
    ),
    dict(
        file=_CHECKING,
        old="    if (paid, entry.delta, entry.unit) != promised:",
        new="    if paid != promised[0] and entry.digest != digest(path):",
        tests=("tests/door/test_forgers.py", "-k", "insider"),
        why="the ledger is not asked what was promised",
    ),
    dict(
        file=_CHECKING,
        old="    if entry.digest != digest(path):",
        new="    if not entry.digest:",
        tests=_LEDGER,
        why="any file passes for the one that was paid for",
    ),
    dict(
        file=_RELEASE,
        old="            written.check(self)\n",
        new="            pass\n",
        tests=_FORGED,
        why="bounds in the file may be anything",
    ),
    dict(
        file="src/dphist/release/readable.py",
        old="        elif text != expected[key]:",
        new="        elif not text:",
        tests=_FORGED,
        why="the file may promise in words what it does not keep",
    ),
    dict(
        file="src/dphist/release/sparse.py",
        old="        chance = values - self.threshold <= scale * np.log(2 / (1 - confidence))",
        new="        chance = values < self.threshold",
        tests=("tests/door/test_file.py", "-k", "sparse"),
        why="cells that passed by chance pass for certain",
    ),
]
