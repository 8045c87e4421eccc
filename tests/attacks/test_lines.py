# ruff: noqa: E501 -- lists of odd lines
"""One record of a text file must not change how another is read, whatever it holds."""

import gzip
import json

import numpy as np
import pytest

import dphist
from dphist.errors import SourceError
from dphist.sources import count, draft_schema
from dphist.sources.files import lines
from dphist.sources.files.lines import REFUSALS

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(9)), dphist.Nominal("y", ["a", "b"], other=True)])
PLAIN = [f"{i % 9},{'ab'[i % 2]}" for i in range(200)]
OBJECTS = [json.dumps({"x": i % 9, "y": "ab"[i % 2]}) for i in range(200)]


def counted(path, *parts, unit=None):
    path.write_bytes(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts))
    return count(str(path), DOMAIN, unit).counts


def whole(texts, end="\n"):
    return "".join(text + end for text in texts)


@pytest.mark.parametrize("at", [0, 10])
@pytest.mark.parametrize(
    ("end", "line"),
    [
        ("\n", '3,"a"\r\n'),
        ("\n", "3,a\r\n"),
        ("\n", "3,a\r"),
        ("\n", "3,a,\r" * 50 + "\n"),
        ("\n", "3,a\r3,a\n"),
        ("\n", "\r\n"),
        ("\n", "\r"),
        ("\r\n", "3,a\n"),
        ("\r\n", '3,"a"\n'),
        ("\r\n", "\n"),
        ("\r\n", "3,a\r\r\n"),
        ("\r\n", "3\r,a\r\n"),
    ],
)
def test_stray_and_mixed_carriage_returns_are_refused(tmp_path, end, line, at):
    with pytest.raises(SourceError, match="carriage return"):
        counted(tmp_path / "d.csv", f"x,y{end}", whole(PLAIN[:at], end), line, whole(PLAIN[at:], end))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_both_kinds_of_line_ends_are_read(tmp_path, end, last):
    text = f"x,y{end}" + end.join(PLAIN) + end * last
    for name, raw in (("d.csv", text.encode()), ("d.csv.gz", gzip.compress(text.encode()))):
        assert counted(tmp_path / name, raw).sum() == 200


@pytest.mark.parametrize(
    "line",
    [
        b"", b"3", b"3,a,", b",", b"3,a,b,c", b" ", b"\x00", b"3,\x00a", b"\xef\xbb\xbf3,a", b"\xff\xfe3\x00,\x00a\x00",
        b"3,\xe2\x82", b"\xf0\x9f", b"\xc3", b"3,\xc3", b"x,y", b"#3,a", b"3;a", b"3\ta", b"\\", b"3,\\", b"3,a\\",
        b"3,'a", b"'3,a", b"3,a\x0b", b"3,a\x0c3,a", b"3,a\xc2\x85", b"3,a\xe2\x80\xa8", b"3,a\x1a", b"3,a\x1e", b"NULL",
        b"3,NULL", b"\\N,\\N", b"3," + b"a" * 100_000, b"," * 5000, b'5" pipe,a', b'3,""', b'"3" , "a" ', b"1e999,a",
        b"3," + b'""""' * 3, b"--", b"3,a -- ", b"nan,a", b"\x1a", b"3,a\x04",
    ],
)  # fmt: skip
@pytest.mark.parametrize("person", [None, "y"])
def test_an_odd_line_moves_no_other(tmp_path, line, person):
    unit = dphist.Unit(rows=40, id=person)
    before = counted(tmp_path / "d.csv", "x,y\n", whole(PLAIN), unit=unit)
    for at in (77, 200):
        after = counted(
            tmp_path / "d.csv", "x,y\n", whole(PLAIN[:at]), line, "\n", whole(PLAIN[at:]), unit=unit
        )
        moved = np.abs(after - before).sum(axis=0)
        # Without an id the line is somebody of its own. With one it may belong to a person who is bounded anyway: which
        # of that person's rows are kept may change altogether, and nobody else's do.
        assert moved.sum() <= (1 if person is None else 2 * unit.rows), line
        assert np.count_nonzero(moved) <= 1, line


@pytest.mark.parametrize("size", [1, 3, 64])
def test_what_is_read_does_not_hang_on_how_the_file_is_cut(tmp_path, monkeypatch, size):
    path = tmp_path / "d.csv"
    texts = [
        '\ufeffx,y\r\n1,a\r\n"2" , "b"\r\n\r\n3,é\r\n4,"a ""b"""\r\n5,"a"',
        'x,y\n1,"a\n2,b\n',
        "x,y\n1,a\r\n",
        "x,y\n1,a\n\n\n2,b",
    ]
    for text in texts:
        outcomes = []
        for cut in (1 << 22, size):
            monkeypatch.setattr(lines, "_PIECE", cut)
            try:
                # The header is read in one piece, which must hold it.
                monkeypatch.setattr(lines, "_HEADER", 1 << 22)
                outcomes.append(counted(path, text).tolist())
            except SourceError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], text


def test_a_line_beyond_every_bound_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dphist.sources.files.lines.LONGEST", 1000)
    monkeypatch.setattr("dphist.sources.files.delimited.LONGEST", 1000)
    monkeypatch.setattr("dphist.sources.files.objects.LONGEST", 1000)
    for cut in (1 << 22, 100):
        monkeypatch.setattr("dphist.sources.files.lines._PIECE", cut)
        counted(tmp_path / "d.csv", "x,y\n", whole(PLAIN), "3," + "a" * 900 + "\n", whole(PLAIN))
        with pytest.raises(SourceError, match="longer than"):
            counted(tmp_path / "d.csv", "x,y\n", whole(PLAIN), "3," + "a" * 1900 + "\n", whole(PLAIN))
        for long in ('{"x":1,"y":"%s"}' % ("a" * 1900), '[{"x":1,"y":"%s"}]' % ("a" * 1900)):
            with pytest.raises(SourceError, match="longer than"):
                counted(tmp_path / "d.json", long)


def test_files_with_other_headers_are_refused(tmp_path):
    (tmp_path / "1.csv").write_text("x,y\n1,a\n")
    for head in ("y,x\na,1\n", "x,y,z\n1,a,b\n", "1,a\n2,b\n"):
        (tmp_path / "2.csv").write_text(head)
        with pytest.raises(SourceError, match="do not begin with the same line"):
            count(str(tmp_path / "*.csv"), DOMAIN)
    # Each file has line ends of its own.
    (tmp_path / "2.csv").write_bytes(b"x,y\r\n1,a\r\n")
    assert count(str(tmp_path / "*.csv"), DOMAIN).counts.sum() == 2


@pytest.mark.parametrize("text", ["", "\n", "x\0,y\n1,a\n", "x\ry\r1,a\r", '"x,y\n1,a\n', "x,x\n1,a\n"])
def test_a_header_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(SourceError, match=r"cannot be read|two columns|carriage"):
        counted(tmp_path / "d.csv", text)
    with pytest.raises(SourceError):
        counted(tmp_path / "d.csv", "x,y\n1,a\n".encode("utf-16"))


@pytest.mark.parametrize(
    "line",
    [
        "{}", '{"x":3}', '{"x":3,"y":"a","z":{"x":[1,{"y":"b"}]}}', '{"z":1,"x":3,"y":"a","x":4,"y":"b"}', '{"x":{"x":3},"y":["a"]}',
        '{"x":3,"y":"a",}', '{"x":3 "y":"a"}', '{"x":"\\ud800"}', '{"x":"\\u0000"}', '{"x":1e999}', '{3}', '{"x":tru}',
        '{"x":' + "[" * 50 + "]" * 50 + "}", '{"x":123456789012345678901234567890}', '{"y":"\\n{\\"x\\":3}"}', "  ", "\t{} \r",
        '{"x":3,"y":"\x01"}', '{"alice@example.org":1}', '{"X":3,"Y":"a"}', '{"x":"3","y":"\\""}', '{"x":3,"y":"a\\\\"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("array", [False, True])
def test_an_odd_object_moves_no_other(tmp_path, line, array):
    def of(texts):
        return "[" + ",\n".join(texts) + "]" if array else whole(texts)

    before = counted(tmp_path / "d.json", of(OBJECTS))
    assert before.sum() == 200
    if array and not line.strip():
        return
    for at in (0, 77):
        after = counted(tmp_path / "d.json", of([*OBJECTS[:at], line, *OBJECTS[at:]]))
        assert np.abs(after - before).sum() <= 1


def test_an_object_that_is_no_text_moves_no_other(tmp_path):
    for text in (b"%s\n%s\n", b"[%s,%s]"):
        odd = b'{"x":3,"y":"\xff"}'
        assert counted(tmp_path / "d.json", text % (OBJECTS[0].encode(), odd)).sum() == 1


@pytest.mark.parametrize(
    "line",
    [
        "{", "}", '{"x":', '{"x":"a', '{"x":"a\\', '{"x":[3}', '{"x":{]}', "5", "null", '"a"', "[]", "[{}", "]",
        '{"x":3}{"x":3}', '{"x":3},{"x":3}', '{"x":3} {"x":3}', '{"x":3}\r{"x":3}', '{\n"x":3}', '{"x":3\n}', "\ufeff{}", "\x00",
        '{"x":3}#', "//", '{"x":3}]', '{"x":"', '{"x":' + "[" * 99 + "]" * 99 + "}", '{"x":"a\n"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("array", [False, True])
def test_an_object_that_is_not_closed_is_refused(tmp_path, line, array):
    def of(texts):
        return "[" + ",".join(texts) + "]" if array else whole(texts)

    if array and line in ('{"x":3},{"x":3}', '{\n"x":3}', '{"x":3\n}', '{"x":"a\n"}', '{"x":3}]'):
        return
    for at in (0, 200):
        if not array and at == 0 and line == "\ufeff{}":
            continue
        refusal = "inside each other" if "[[" in line else "neither one JSON object"
        with pytest.raises(SourceError, match=refusal):
            counted(tmp_path / "d.json", of([*OBJECTS[:at], line, *OBJECTS[at:]]))


@pytest.mark.parametrize("size", [7, 30])
def test_arrays_are_read_however_they_are_cut_and_laid_out(tmp_path, monkeypatch, size):
    table = [json.loads(text) for text in OBJECTS[:20]]
    for indent in (None, 2):
        for cut in (1 << 22, size):
            monkeypatch.setattr("dphist.sources.files.lines._PIECE", cut)
            path = tmp_path / "d.json"
            assert counted(path, " \n", json.dumps(table, indent=indent), "\n ").sum() == 20
            with pytest.raises(SourceError, match="neither"):
                counted(path, json.dumps(table, indent=indent)[:-1])
            with pytest.raises(SourceError, match="neither"):
                counted(path, json.dumps(table, indent=indent), "[]")


def test_a_field_that_nobody_has_is_refused_without_naming_others(tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"x":3,"alice@example.org":1}\n')
    with pytest.raises(SourceError, match="no column y") as caught:
        count(str(path), DOMAIN)
    assert "alice" not in str(caught.value)


def test_messages_do_not_name_columns_that_were_not_declared(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("3,alice@example.org\n4,bob@example.org\n")
    with pytest.raises(SourceError, match="no column x") as caught:
        count(str(path), DOMAIN)
    assert "alice" not in str(caught.value)
    import pandas as pd

    for frame in (pd.DataFrame({"alice@example.org": [1]}), pd.DataFrame({"alice@example.org": [1, "a"]})):
        with pytest.raises(SourceError) as caught:
            count(frame, DOMAIN)
        assert "alice" not in str(caught.value)


@pytest.mark.parametrize(
    "head",
    ["3,alice@example.org", "3,a", "a,2024-01-01", "a,2024-01-01T10:00Z", "a,-1.5", "a,nan", "a,", "a,10:30", "a,+49 30 1234", "ann,true,F"],
)  # fmt: skip
def test_a_first_line_that_looks_like_a_record_is_not_drafted(tmp_path, head):
    path = tmp_path / "d.csv"
    path.write_text(f"{head}\n4,b\n")
    with pytest.raises(SourceError, match="does not look like column names") as caught:
        draft_schema(path)
    assert "alice" not in str(caught.value)
    assert "2024" not in str(caught.value)


def test_a_draft_names_the_fields_that_most_objects_have(tmp_path):
    path = tmp_path / "d.json"
    path.write_text(whole(OBJECTS) + '{"x":1,"y":"a","alice@example.org":1}\n{"zebra":1}\n')
    draft = draft_schema(path)
    assert 'name = "x"' in draft
    assert 'name = "y"' in draft
    assert "alice" not in draft
    assert "zebra" not in draft


def test_a_refusal_says_what_was_found_and_nothing_else(tmp_path):
    path = tmp_path / "d.csv"
    for line, reason in (('3,"zebra', "quote"), ("3,zebra\r", "carriage")):
        with pytest.raises(SourceError) as caught:
            counted(path, "x,y\n", whole(PLAIN), line, "\n")
        assert str(caught.value) == f"{path}: {REFUSALS[reason]}"
