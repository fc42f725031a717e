"""Neighbours of odd tables that people met: of each kind ten, with the right value and note, or why it is refused."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.commands import Folder

ACCURACY = "--truth y --prediction p --metric accuracy"
SPANS = "--truth y --prediction p --metric precision_micro --metric recall_micro"
MAE = "--truth y --prediction p --metric mae"


@dataclass(frozen=True)
class Table:
    """A table as CSV, or as JSON lines, with what follows of it.

    Attributes:
        values: of the metrics in order; none where it is refused.
        note: what the notes or the refusal say.
    """

    rows: str
    words: str
    values: tuple[float | None, ...] = ()
    note: str = ""
    code: int = 0

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.rows.split(" | "))


def csv(columns: str, *cells: str) -> str:
    return " | ".join([columns, *cells])


def jsonl(*rows: str) -> str:
    return " | ".join(rows)


KINDS: dict[str, list[Table]] = {
    "a word among numbers that are labels is a label": [
        Table(csv("y,p", "1,1", "0,0", "1,unknown", "0,0"), ACCURACY, (0.75,), "1 word among"),
        Table(csv("y,p", "1,1.0", "0,0.0", "1,unknown", "0,0"), ACCURACY, (0.75,), "1 word among"),
        Table(csv("y,p", "1,1", "0,0", "unclear,1", "0,0"), ACCURACY, (0.75,), "1 word among"),
        Table(csv("y,p", "1,1", "0,0", "unclear,unclear", "0,0"), ACCURACY, (1.0,), "1 word among"),
        Table(jsonl('{"y":1,"p":1.0}', '{"y":0,"p":0}', '{"y":0,"p":"n"}'), ACCURACY, (2 / 3,), "1 word among"),
        Table(jsonl('{"y":1,"p":"1"}', '{"y":0,"p":0.0}', '{"y":0,"p":"n"}'), ACCURACY, (2 / 3,), "text"),
        Table(jsonl('{"y":"1","p":1}', '{"y":"0","p":0}', '{"y":"0","p":1}'), ACCURACY, (2 / 3,)),
        Table(jsonl('{"y":10,"p":1e1}', '{"y":20,"p":"20"}', '{"y":20,"p":10}'), ACCURACY, (2 / 3,)),
        Table(csv("y,p", "3,3", "4,4", "5,?", "3,-3"), ACCURACY, (2 / 3,), "'?', taken as missing"),
        Table(csv("y,p", "a,a", "b,1", "a,a", "b,b"), ACCURACY, (0.75,)),
    ],
    "a missing cell in any of its words is missing where numbers are": [
        *(
            Table(csv("y,p", "1,1", "2,3", f"3,{word}", "4,4"), MAE, (1 / 3,))
            for word in ("", "NA", "N/A", "nan", "NaN", "null", "None", "NULL", "n/a", "#N/A")
        ),
    ],
    "a condition sees numbers, whatever stands among them": [
        Table(csv("y,p,age", "1,1,31", "0,1,40", "1,0,NA", "1,0,29"), f"{ACCURACY} --where 'age > 30'", (0.5,)),
        Table(csv("y,p,age", "1,1,31", "0,1,40.5", "1,0,", "1,0,29"), f"{ACCURACY} --where 'age > 30'", (0.5,)),
        Table(csv("y,p,age", "1,1,100", "0,1,40", "1,0,9", "1,0,29"), f"{ACCURACY} --where 'age > 30'", (0.5,)),
        Table(csv("y,p,age", "1,1,31.0", "0,1,31", "1,0,30"), f"{ACCURACY} --where 'age == 31'", (0.5,)),
        Table(csv("y,p,age", "1,1,1e2", "0,1,100", "1,0,30"), f"{ACCURACY} --where 'age == 100'", (0.5,)),
        Table(csv("y,p,z", "1,1,true", "0,1,TRUE", "1,0,False"), f"{ACCURACY} --where 'z == true'", (0.5,)),
        Table(csv("y,p,z", "1,1,yes", "0,1,no", "1,0,no"), f"{ACCURACY} --where 'z == \"no\"'", (0.0,)),
        Table(csv("y,p,z", "1,1,01", "0,1,1", "1,0,01"), f"{ACCURACY} --where 'z == \"01\"'", (0.5,)),
        Table(csv("y,p,age", "1,1,31", "0,1,NA", "1,0,29"), f"{ACCURACY} --where 'age == null'", (0.0,)),
        Table(csv("y,p,age", "1,1,31", "0,1,40"), f"{ACCURACY} --where 'size > 30'", note="size", code=1),
    ],
    "the first k of scores are those with the highest": [
        Table(
            csv("y,a,b,c", f"{truth},.5,.3,.2", "b,.1,.8,.1"),
            f"--truth y --score a=a --score b=b --score c=c --metric top_{k}_accuracy",
            (value,),
        )
        for truth, k, value in [("a", 1, 1.0), ("b", 1, 0.5), ("b", 2, 1.0), ("c", 2, 0.5), ("c", 3, 1.0)]
    ]
    + [
        Table(
            csv("y,p,a,b,c", f"{truth},a,.5,.3,.2", "b,b,.1,.8,.1"),
            f"--truth y --prediction p --score a=a --score b=b --score c=c --metric top_{k}_accuracy",
            (value,),
        )
        for truth, k, value in [("a", 1, 1.0), ("b", 2, 1.0), ("c", 2, 0.5), ("c", 1, 0.5), ("c", 3, 1.0)]
    ],
    "lists in text are sets of labels": [
        Table(csv("y;p", "['a','b'];['b','a']", "[];['b']", "['c'];['c']"), ACCURACY, (2 / 3,), "lists"),
        Table(csv("y;p", '["a","b"];["b","a"]', '[];["b"]', '["c"];["c"]'), ACCURACY, (2 / 3,), "lists"),
        Table(csv("y;p", "[1, 2];[2, 1]", "[];[1]", "[3];[3]"), ACCURACY, (1 / 3,), "lists"),
        Table(csv("y;p", "['a'];['a','b']", "['b'];['b']"), f"{ACCURACY} --metric hamming_loss", (0.5, 0.25), "lists"),
        Table(jsonl('{"y":["a","b"],"p":["b","a"]}', '{"y":[],"p":["b"]}'), ACCURACY, (0.5,)),
        Table(jsonl('{"y":["a"],"p":"[\'a\']"}', '{"y":["b"],"p":"[]"}'), ACCURACY, (0.5,), "lists"),
        Table(csv("y;p", "a|b;b|a", "b;b", "a;b"), f"{ACCURACY} --type y=list --type p=list", (2 / 3,)),
        Table(csv("y;p", "a|b;b|a", "b;b", "a;b"), ACCURACY, (1 / 3,)),
        Table(csv("y;p", "['a'];['a']", "['b'];x"), ACCURACY, note="'y' holds lists of text", code=1),
        Table(csv("y;p", "['a'];['a']", "['b'];"), ACCURACY, (1.0,), "without a prediction"),
    ],
    "lists of tags of tokens are the spans that they mark": [
        *(
            Table(
                jsonl(*(json.dumps({"y": truth.split(), "p": said.split()}) for truth, said in rows)),
                SPANS,
                value,
                "spans",
            )
            for rows, value in [
                ([("B-A I-A O B-C", "B-A I-A O O"), ("O O B-C", "O B-A B-C")], (2 / 3, 2 / 3)),
                ([("B-A I-A O", "B-A O O")], (0.0, 0.0)),
                ([("B-A B-A O", "B-A I-A O")], (0.0, 0.0)),
                ([("I-A I-A O", "B-A I-A O")], (1.0, 1.0)),
                ([("S-A O B-C E-C", "B-A O B-C I-C")], (1.0, 1.0)),
                ([("U-A O B-C L-C", "S-A O B-C E-C")], (1.0, 1.0)),
                ([("B-A I-C O", "B-A B-C O")], (1.0, 1.0)),
            ]
        ),
        Table(
            jsonl('{"y":["B-A","O"],"p":["B-A"]}', '{"y":["B-A","O"],"p":["B-A","O"]}'),
            SPANS,
            (1.0, 1.0),
            "rows.jsonl:1: 1 of 2 tokens",
        ),
        Table(jsonl('{"y":["O","O"],"p":["O","O"]}'), "--truth y --prediction p --metric accuracy", (1.0,)),
        Table(csv("y,p", "B-A,B-A", "O,B-A", "O,O"), "--truth y --prediction p --metric accuracy", (2 / 3,)),
    ],
    "labels that differ in spelling only are different, and noted": [
        *(
            Table(csv("y,p", f"{one},{other}", f"{one},{one}", "no,no"), ACCURACY, (2 / 3,), "differ in spelling only")
            for one, other in [
                ("Yes", "yes"),
                ("yes ", "yes"),
                ("caf\u00e9", "cafe\u0301"),
                ("New York", "new  york"),
                ("ＡＢＣ", "ABC"),
                ("x 7.0", "X 7.0"),
                ("straße", "STRASSE"),
                ("x\u00a0y", "x y"),
            ]
        ),
        Table(csv("y,p", "1,1.0", "2,2", "3,3.00"), ACCURACY, (1.0,)),
        Table(csv("y,p", "a,c", "b,d"), ACCURACY, (0.0,), "occurs in"),
    ],
    "groups are equal values": [
        Table(csv("y,p,g", "1,1,1", "0,1,1.0", "1,1,2"), f"{ACCURACY} --by g", (2 / 3, 0.5, 1.0)),
        Table(csv("y,p,g", "1,1,a", "0,1,a", "1,1,b"), f"{ACCURACY} --by g", (2 / 3, 0.5, 1.0)),
        Table(csv("y,p,g", "1,1,true", "0,1,True", "1,1,false"), f"{ACCURACY} --by g", (2 / 3, 1.0, 0.5)),
        Table(csv("y,p,g", "1,1,01", "0,1,01", "1,1,1"), f"{ACCURACY} --by g", (2 / 3, 0.5, 1.0)),
        Table(csv("y,p,g", "1,1,a", "0,1,A", "1,1,A"), f"{ACCURACY} --by g", (2 / 3, 0.5, 1.0), "differ in spelling"),
        Table(
            jsonl('{"y":1,"p":1,"g":1}', '{"y":0,"p":1,"g":"x"}', '{"y":1,"p":1,"g":1.0}'),
            f"{ACCURACY} --by g",
            (2 / 3, 1.0, 0.0),
            "text",
        ),
        Table(jsonl('{"y":1,"p":1,"g":[1]}', '{"y":0,"p":1,"g":[2]}'), f"{ACCURACY} --by g", note="no groups", code=1),
        Table(
            jsonl('{"y":1,"p":1,"g":{"a":1}}', '{"y":0,"p":1,"g":{"a":2}}'),
            f"{ACCURACY} --by g",
            note="no groups",
            code=1,
        ),
        Table(jsonl('{"y":1,"p":1,"g":1}', '{"y":0,"p":1,"g":[1]}'), f"{ACCURACY} --by g", note="no groups", code=1),
        Table(csv("y,p,g", *(f"1,1,{n}" for n in range(51))), f"{ACCURACY} --by g", note="--groups 51", code=1),
    ],
    "a row without a score is one row without a score": [
        *(
            Table(
                csv("y,p,s", "1,1,.9", "0,0,.1", f"1,1,{word}", "0,0,.2"),
                "--truth y --prediction p --score s --metric auc --metric accuracy",
                (1.0, 1.0),
            )
            for word in ("", "NA", "nan", "null", "None", "-")
        ),
        Table(
            csv("y,s", "1,.9", "0,.1", "1,", "0,.95"),
            "--truth y --score s --metric auc",
            (0.5,),
        ),
        Table(
            csv("y,p,s", "1,1,.9", "0,0,.1", "1,1,inf", "0,0,.2"),
            "--truth y --prediction p --score s --metric auc",
            note="rows.csv:4: 's' is 'inf'",
            code=1,
        ),
        Table(
            csv("y,s", "1,x", "0,y", "1,z", "0,.2"),
            "--truth y --score s --metric auc",
            note="'s'",
            code=1,
        ),
        Table(
            jsonl('{"y":1,"s":0.9}', '{"y":0,"s":"0.1"}', '{"y":1,"s":null}', '{"y":0}'),
            "--truth y --score s --metric auc",
            (1.0,),
        ),
    ],
    "numbers are read as a column": [
        Table(csv("y;p", "1,5;1,5", "2,5;3,5", "4;4"), MAE, (1 / 3,), "have a decimal comma"),
        Table(csv("y,p", "10%,20%", "30%,30%"), MAE, (0.05,), "percent"),
        Table(csv("y,p", "$1,$2", "$3,$3"), MAE, (0.5,), "$"),
        Table(csv("y,p", "€1,€2", "€3,€3"), MAE, (0.5,), "€"),
        Table(csv("y;p", "1,234;1,234", "2,345;2,345"), f"{MAE} --kind numeric", note="1,234", code=1),
        Table(csv("y,p", "1e3,1000", "2E3,1999"), MAE, (0.5,)),
        Table(csv("y,p", "1.0,2", " 3,3 "), MAE, (0.5,)),
        Table(csv("y,p", "1,x", "2,y", "3,z", "4,4"), f"{MAE} --kind numeric", note="'p'", code=1),
        Table(jsonl('{"y":1.5,"p":"2.0"}', '{"y":2.5,"p":2.5}'), MAE, (0.25,)),
        Table(jsonl('{"y":1.5,"p":true}', '{"y":2.5,"p":false}'), MAE, note="'p'", code=1),
    ],
    "integers with a gap are integers": [
        *(
            Table(csv("y,p", *rows), ACCURACY, (value,))
            for rows, value in [
                (("1,1.0", "0,0.0", "1,"), 1.0),
                (("1.0,1", "0.0,1", ",1"), 0.5),
                (("1.0,1.0", "0.0,1.0", "1.0,NA"), 0.5),
                (("3,3.0", "4,4.0", "5,"), 1.0),
                (("-1,-1.0", "1,1.0", "1,"), 1.0),
                (("9007199254740993,9007199254740993", "1,2", "2,2", "3,3"), 0.75),
                (("9007199254740993,9007199254740992", "1,1", "2,2", "3,3"), 0.75),
                (("18446744073709551617,18446744073709551617", "1,2"), 0.5),
                (("true,true", "false,true", "true,"), 0.5),
                (("1,true", "0,false", "1,false"), 2 / 3),
            ]
        ),
    ],
    "words and codes stay text": [
        Table(csv("y,p", "01,01", "1,01", "02,02"), ACCURACY, (2 / 3,)),
        Table(csv("y,p", "yes,yes", "no,yes"), ACCURACY, (0.5,)),
        Table(csv("y,p", "NO,NO", "SE,NO", "NA,NA"), ACCURACY, (2 / 3,), "NA"),
        Table(csv("y,p", "None,None", "some,some", "some,None"), ACCURACY, (2 / 3,), "None"),
        Table(csv("y,p", '"",a', "a,a", '"",b'), ACCURACY, (1 / 3,)),
        Table(csv("y,p", "1_0,10", "10,10", "b,b"), ACCURACY, (2 / 3,)),
        Table(csv("y,p", "0x1,1", "1,1", "b,b"), ACCURACY, (2 / 3,)),
        Table(csv("y,p", "1,1", "2,3"), f"{ACCURACY} --type y=text --type p=text", (0.5,)),
        Table(csv("y,p", "1.0,1", "2,2"), f"{ACCURACY} --type y=text --type p=text", (0.5,), "spelling"),
        Table(csv("y,p", "007,7", "008,008"), "--truth y --prediction p --metric cer", (2 / 6,)),
    ],
    "the highest score is the prediction, or it is noted": [
        Table(
            csv("y,p,a,b", *rows),
            "--truth y --prediction p --score a=a --score b=b --metric accuracy",
            (value,),
            note,
        )
        for rows, value, note in [
            (("a,a,.9,.1", "b,b,.2,.8"), 1.0, ""),
            (("a,b,.9,.1", "b,b,.2,.8"), 0.5, "highest score in 1 of 2"),
            (("a,b,.9,.1", "b,a,.2,.8"), 0.0, "highest score in 2 of 2"),
            (("a,a,.5,.5", "b,b,.5,.5"), 1.0, ""),
            (("a,a,9,1", "b,a,2,8"), 0.5, "highest score in 1 of 2"),
            (("a,a,,.1", "b,a,.2,.8"), 0.5, "highest score in 1 of 1"),
            (("a,,.9,.1", "b,b,.2,.8"), 1.0, "without a prediction"),
            (("a,a,-.1,-.9", "b,a,-.1,-.2"), 0.5, ""),
            (("a,b,.51,.49", "b,b,.49,.51"), 0.5, "highest score in 1 of 2"),
            (("a,a,1,0", "a,a,1,0"), 1.0, "one class only"),
        ]
    ],
}


@pytest.mark.parametrize(
    "table", [pytest.param(table, id=f"{kind} {n}") for kind, tables in KINDS.items() for n, table in enumerate(tables)]
)
def test_a_neighbour_has_its_value_and_its_note(tmp_path: Path, table: Table) -> None:
    folder, path = Folder(tmp_path), tmp_path / ("rows.jsonl" if table.rows.startswith("{") else "rows.csv")
    path.write_text(table.text)
    result = folder.call("score", path, *shlex.split(table.words), "--json")
    assert result.exit_code == table.code, result.output
    assert "Traceback" not in result.output
    if table.code:
        assert table.note in result.output
        return
    facts = json.loads(result.stdout)
    assert [row["value"] for row in facts["metrics"]] == pytest.approx(table.values)
    assert table.note in "\n".join(facts["notes"])


def test_there_are_ten_neighbours_of_each_kind() -> None:
    assert {kind: len(tables) for kind, tables in KINDS.items()} == dict.fromkeys(KINDS, 10)
