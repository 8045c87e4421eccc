"""What a release answers to some questions, as it stands beside the golden files."""

import numpy as np

import dphist
from dphist.release.cube.measures import sums

CONFIDENCES = (0.95, 0.8)


def told(release, asked):
    """What a release answers: value and both ends, null where there is none."""
    found = {}
    for sure in CONFIDENCES:
        one_by_one = [dphist.Workload(release.domain, *np.array(box)[:, None]) for box in asked]
        answers = [release.answer(one, confidence=sure) for one in one_by_one]
        found[str(sure)] = [plain(each) for each in answers]
        if release.sums:
            found[f"sums {sure}"] = [plain(sums(release, "cost", one, sure)) for one in one_by_one]
    return found


def plain(answers):
    return [
        None if np.isnan(each[0]) else float(each[0]) for each in (answers.value, answers.low, answers.high)
    ]
