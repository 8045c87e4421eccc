"""The measurements behind the figures we quote run, and print what they promise."""

from dphist_bench import noisefirst, segmentation


def test_segmentation(capsys):
    assert segmentation.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert "O(n²)" in printed
    assert "spikes" in printed


def test_prices(capsys):
    assert noisefirst.main(["--quick"]) == 0
    assert "mean 3 ln n" in capsys.readouterr().out
