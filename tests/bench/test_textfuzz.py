"""The fuzzing of text files runs, and sees a reader that one record leads astray."""

from dphist_bench import catalogue
from dphist_bench.measurements.trust import textfuzz


def test_no_record_changes_how_another_is_read(capsys):
    assert catalogue.measure("textfuzz", ["--quick"]) == 0
    assert "as before" in capsys.readouterr().out


def test_a_reader_that_joins_lines_is_caught(monkeypatch):
    kind = textfuzz.KINDS[0]
    read = kind.read
    # As a reader does that takes a carriage return for the end of a line, or a quote on to the next.
    monkeypatch.setattr(kind, "read", lambda text: read(text.replace(b"\r", b"\n").replace(b"\\\n", b"")))
    assert textfuzz.run(kind, 3000, 1)[2] > 0
