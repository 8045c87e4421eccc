"""Mutants of guaranteed intervals and of measured tables: bounds that are too narrow, budgets that do not add up."""

_GUARANTEED = "src/dphist/inference/guaranteed.py"
_PREDICTABLE = "src/dphist/kernels/trees/predictable.py"
_TABLES = "src/dphist/inference/tables.py"
_MARGINALS = "src/dphist/mechanisms/marginals.py"
_TABLE_NOISE = "src/dphist/inference/tablenoise.py"
_PLAN = "src/dphist/mechanisms/tableplan.py"

_REACH = ("tests/inference/test_guaranteed.py", "-k", "reach or mixture")
_WEIGHED = ("tests/inference/test_guaranteed.py", "-k", "draw_is_counted")
_SHARED = ("tests/inference/test_guaranteed.py", "-k", "error_is_shared")
_SETTLED = ("tests/inference/test_guaranteed.py", "-k", "settled_before")
_ENCLOSED = ("tests/inference/test_guaranteed.py", "-k", "encloses")
_SUMS = ("tests/inference/test_guaranteed.py", "-k", "sums_of_draws")
_SQUARES = ("tests/inference/test_tables.py", "-k", "least_squares")
_SPLIT = ("tests/mechanisms/test_marginals.py", "-k", "plans_split or no_sense or asked_once")
_UNMEASURED = ("tests/mechanisms/test_marginals.py", "-k", "inside_no_table")

_SMALL = "tests/attacks/test_small_print.py"
MUTANTS = [
    dict(
        file=_GUARANTEED,
        old="    needed = -math.log(error)\n",
        new="    needed = -math.log(2 * error)\n",
        tests=_REACH,
        why="the reach is for twice the error that is allowed",
    ),
    dict(
        file=_GUARANTEED,
        old="_MASSES: tuple[float, ...] = (0.02, 0.06, 0.18, 0.26,",
        new="_MASSES: tuple[float, ...] = (0.02, 0.06, 0.18, 0.36,",
        tests=_REACH,
        why="the masses of the mixture add up to more than one",
    ),
    dict(
        file=_GUARANTEED,
        old="rates**2 * noise[:, 0:1] + rates**4 * noise[:, 1:2] * excess",
        new="rates**2 * noise[:, 0:1]",
        tests=_REACH,
        why="Laplace noise is taken for normal",
    ),
    dict(
        file=_GUARANTEED,
        old="np.where(theta < 1.0, costs, np.inf)",
        new="np.where(theta < 1e9, costs, np.inf)",
        tests=(_SMALL, "-k", "without_a_moment"),
        why="a rate at which the moment generating function does not exist is used",
    ),
    dict(
        file=_GUARANTEED,
        old="martingale_widths(noise[:, side], error / 2.0,",
        new="martingale_widths(noise[:, side], error,",
        tests=_SHARED,
        why="each side may err as often as both together",
    ),
    dict(
        file=_GUARANTEED,
        old="one = error * _FOR_CUTS / (2.0 * self.levels)",
        new="one = error * _FOR_CUTS / self.levels",
        tests=_SHARED,
        why="each end of a range may err as often as both together",
    ),
    dict(
        file=_GUARANTEED,
        old="            error *= 1.0 - _FOR_CUTS\n",
        new="",
        tests=_SHARED,
        why="what is cut may err besides what was asked for",
    ),
    dict(
        file=_GUARANTEED,
        old="around = np.where(tree.pool[around], np.maximum(tree.parent[around], 0), around)",
        new="around = np.where(tree.pool[around], around, around)",
        tests=_SETTLED,
        why="blocks of a pool are weighed by its total, which is measured after them",
    ),
    dict(
        file=_PREDICTABLE,
        old="                        under += max(known + least_whole, 0.0) * bound",
        new="                        under += 0.0",
        tests=_ENCLOSED,
        why="what a pool's cut block holds is not taken off",
    ),
    dict(
        file=_PREDICTABLE,
        old="                    rest = side - off - weight",
        new="                    rest = lack - weight",
        tests=_ENCLOSED,
        why="a block that is cut is taken to be even",
    ),
    dict(
        file=_GUARANTEED,
        old="        scale = np.sqrt(variance / 2.0)\n        seen =",
        new="        scale = np.sqrt(variance / 4.0)\n        seen =",
        tests=_WEIGHED,
        why="noise is taken for less than it is",
    ),
    dict(
        file=_GUARANTEED,
        old="half_widths(spread, confidence)",
        new="half_widths(spread, 2 * confidence - 1)",
        tests=_SUMS,
        why="sums of draws err twice as often as they say",
    ),
    dict(
        file=_PREDICTABLE,
        old="                _draw(made, i, (1.0 - k) * scale[i])\n",
        new="",
        tests=_WEIGHED,
        why="of two draws one is forgotten",
    ),
    dict(
        file=_PREDICTABLE,
        old="            made[i, 0] += square * made[child, 0]",
        new="            made[i, 0] += square * square * made[child, 0]",
        tests=_WEIGHED,
        why="noise from below is weighed by the square of its weight",
    ),
    dict(
        file=_PREDICTABLE,
        old="                    _draw(noise[q], side, rest * scale[i])\n",
        new="",
        tests=_WEIGHED,
        why="the noise of a block that is cut is forgotten",
    ),
    dict(
        file="src/dphist/kernels/predictive/likeliest.py",
        old="_below(first - 0.5, middle, spread) - confidence",
        new="_below(first - 0.5, middle, spread) - 0.9 * confidence",
        tests=("tests/kernels/test_predictive.py", "-k", "likeliest"),
        why="counts of single cells are dropped although they are needed",
    ),
    dict(
        file="src/dphist/inference/predictive/sparse.py",
        old="    alike &= whole <= _AS_SMALL * np.maximum(typical, np.sqrt(noise))\n",
        new="",
        tests=("tests/kernels/test_predictive.py", "-k", "sparse"),
        why="sparse blocks are taken to be as even as full ones",
    ),
    dict(
        file=_TABLES,
        old="self.cells_in(self.axes[table]) * 2.0 * self.scales[table] ** 2",
        new="self.cells_in(self.axes[table]) * self.scales[table] ** 2",
        tests=_SQUARES,
        why="tables are said to be half as noisy as they are",
    ),
    dict(
        file=_TABLES,
        old="            inside |= ~bounded[:, others].any(axis=1)",
        new="            inside |= ~bounded[:, others].all(axis=1)",
        tests=_SQUARES,
        why="what was not measured is said to have been",
    ),
    dict(
        file=_TABLES,
        old="variance += 2.0 * self.scales[self._whole] ** 2 * np.prod(lengths, axis=1)",
        new="variance += self.scales[self._whole] ** 2 * np.prod(lengths, axis=1)",
        tests=_SQUARES,
        why="the cube's own noise is halved where it is told",
    ),
    dict(
        file=_TABLE_NOISE,
        old="return Spread(np.where(missing, np.nan, variance), np.where(missing, np.nan, largest))",
        new="return Spread(variance, largest)",
        tests=(_SMALL, "-k", "no_variance"),
        why="what was not measured gets an interval",
    ),
    dict(
        file=_MARGINALS,
        old="or sum(self.shares) != 1 or",
        new="or",
        tests=_SPLIT,
        why="shares that do not sum to one are taken",
    ),
    dict(
        file=_MARGINALS,
        old="            scales.append(float(noisy.scale))",
        new="            scales.append(float(noisy.scale) / 2)",
        tests=_SPLIT,
        why="tables are told to be half as noisy as they were asked for",
    ),
    dict(
        file=_MARGINALS,
        old="zip(data.split(*shares), axes, strict=True)",
        new="zip(data.split(*[1] * len(shares)), axes, strict=True)",
        tests=_SPLIT,
        why="every table is measured with the whole budget",
    ),
    dict(
        file=_MARGINALS,
        old="axes = tuple(t for t in axes if not any(set(t) < set(u) for u in axes)) or ((0,),)",
        new="axes = tuple(sorted(axes + axes[:1])) or ((0,),)",
        tests=_SPLIT,
        why="a table is measured twice",
    ),
    dict(
        file=_PLAN,
        old="    kept.append((every, 1 - sum((share for _, share in kept), Fraction(0))))",
        new="    kept.append((every, Fraction(int(counts[-1]), _GRID)))",
        tests=_SPLIT,
        why="a plan's shares do not sum to one",
    ),
    dict(
        file=_PLAN,
        old="    kept.append((every, 1 - sum((share for _, share in kept), Fraction(0))))",
        new="    kept.append((every, Fraction(1)))",
        tests=_SPLIT,
        why="a plan spends more than there is",
    ),
]
