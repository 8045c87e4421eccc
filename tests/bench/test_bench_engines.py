"""The experiment on large inputs runs and counts alike."""

from dphist_bench import engines


def test_it_prints_its_table(capsys):
    assert engines.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    counted = [line.split()[-3] for line in lines if line.endswith("rows counted")]
    assert len(counted) == 3
    assert counted[0] == counted[1]
    assert any(line.endswith("cells published") for line in lines)
