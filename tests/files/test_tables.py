"""Edge lists: headers, columns, separators, numbers and names, each read right or refused in one line."""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tadropedge import Graph, TadropedgeError
from tadropedge.files import has_header, read_file


def read(tmp_path, text, name="e.csv", **options):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(file, **options)


def arcs(contents):
    """The edges by the names of their ends."""
    return [tuple(contents.node_ids[node] for node in arc) for arc in contents.arcs.T]


def refused(tmp_path, text, words, name="e.csv", **options):
    with pytest.raises(TadropedgeError, match=words) as caught:
        read(tmp_path, text, name, **options).to_graph()
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


# -- headers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("user,friend\n7,8\n8,9\n", True),  # names above numbers
        ("from_id,to_id\nann,bob\n", True),  # known words, with _id
        ("Source,Target\nann,bob\n", True),  # in any case
        ("u,v\nann,bob\n", True),
        ("src\tdst\nann\tbob\n", True),
        ("a,b,weight\nann,bob,0.5\n", True),
        ("7,8\n8,9\n", False),
        ("0,1\n2,3\n", False),
        ("ann,bob\nbob,eve\n", False),  # its names recur
        ("ann,bob,0.5\neve,joe,1\n", False),  # a number above numbers
        ("1,2,0.5\n2,3,\n", False),
    ],
)
def test_what_a_first_line_is(text, header, tmp_path):
    rows = [line.replace("\t", ",").split(",") for line in text.splitlines()]
    assert has_header(rows[0], rows[1:]) is header
    if not text.endswith(",\n"):
        contents = read(tmp_path, text)
        assert contents.arcs.shape[1] == len(rows) - header
        assert ("header read" in contents.read) is header


@pytest.mark.parametrize(
    "text",
    [
        "user_a,user_b\nann,bob\nbob,eve\n",  # merely never recur
        "ann,bob\neve,joe\n",
        "ann,bob\n",
        "source,target\nann,bob\nsource,target\nbob,eve\n",  # known words that recur
        "2nd,3rd\n7,8\n8,9\n",
        "1_0,2\n7,8\n8,9\n",
    ],
)
def test_where_it_may_be_either_the_user_is_asked(text, tmp_path):
    error = refused(tmp_path, text, "header=True or header=False")
    assert error.argument == "header"
    lines = len(text.splitlines())
    if lines > 1:
        assert read(tmp_path, text, header=True).arcs.shape[1] == lines - 1
    if "_0" not in text:
        assert read(tmp_path, text, header=False).arcs.shape[1] == lines


def test_a_name_that_recurs_late_makes_an_edge(tmp_path):
    many = "".join(f"a{number},b{number}\n" for number in range(30_000))
    assert read(tmp_path, f"ann,bob\n{many}eve,ann\n").arcs.shape[1] == 30_002
    refused(tmp_path, f"ann,bob\n{many}eve,anne\n", "header")


def test_a_header_in_front_of_nothing_is_no_graph(tmp_path):
    refused(tmp_path, "source,target\n", "no edges")
    refused(tmp_path, "# only this\n\n", "nothing")
    refused(tmp_path, "", "nothing")


# -- columns -------------------------------------------------------------------------------------------

TRIPS = "id,when,b,a,w,price\n1,mon,x,y,0.5,3\n2,tue,y,z,2,4\n"


def test_columns_by_name_and_by_number(tmp_path):
    by_name = read(tmp_path, TRIPS, columns={"source": "a", "target": "b", "weight": "w"}, column="price")
    by_number = read(tmp_path, TRIPS, columns={"source": 4, "target": "3", "weight": 5}, column=6)
    for contents in (by_name, by_number):
        assert arcs(contents) == [("y", "x"), ("z", "y")]
        assert contents.weight.tolist() == [0.5, 2]
        assert contents.column.tolist() == [3, 4]
    assert by_name.read == (
        "2 edges from columns 'a' and 'b', weights from 'w', column 'price'; header read; left out: 'id', 'when'"
    )
    without = read(tmp_path, TRIPS, columns={"source": "a", "target": "b", "weight": "w"}, weighted=False)
    assert without.weight is None
    assert "weights" not in without.read
    headless = read(tmp_path, "7 8 9 2.5\n8 9 7 3.5\n", columns={"source": 1, "target": 3, "weight": 4})
    assert arcs(headless) == [(7, 9), (8, 7)]
    assert headless.weight.tolist() == [2.5, 3.5]


def test_named_columns_say_that_there_is_a_header(tmp_path):
    contents = read(tmp_path, "user_a,user_b\nann,bob\n", columns={"source": "user_a", "target": "user_b"})
    assert arcs(contents) == [("ann", "bob")]


def test_known_names_are_found_anywhere_and_an_index_is_left_out(tmp_path):
    contents = read(tmp_path, "Weight,Target,Source\n0.5,b,a\n")
    assert arcs(contents) == [("a", "b")]
    assert contents.weight.tolist() == [0.5]
    assert arcs(read(tmp_path, "id,user_a,user_b\n1,10,20\n2,20,30\n")) == [(10, 20), (20, 30)]
    assert arcs(read(tmp_path, "id,friend\n1,10\n2,20\n")) == [(1, 10), (2, 20)]


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        ("a,b,when\n1,2,3\n", "'when' may be a weight", {}),
        ("source,target,weight,w\n1,2,3,4\n", "may be a weight", {}),
        ("a,b,c,d\n1,2,3,4\n", "which", {}),
        ("1 2 3 4\n", "2 or 3 columns", {}),
        ("12\n", "2 or 3 columns", {}),
        (TRIPS, "no column 'nowhere'", {"columns": {"source": "nowhere", "target": "a"}}),
        (TRIPS, "no column 7", {"columns": {"source": 7, "target": "a"}}),
        (TRIPS, "one end", {"columns": {"source": "a"}}),
        (TRIPS, "twice", {"columns": {"source": "a", "target": "a"}}),
        (TRIPS, "'mon' in column 'when'", {"columns": {"source": "a", "target": "b", "weight": "when"}}),
        ("a,a\n1,2\n", "several", {"columns": {"source": "a", "target": 2}}),
        ("1,2\n\n# note\n3,4,5\n", ":4: .* got 3", {}),
        ("1,2\n" * 50_000 + "3\n", ":50001: expected 2 columns, got 1", {}),
        ("a,b,w\n1,2,1\n2,3\n", ":3: expected 3 columns, got 2", {}),
        ('1,"2\n3,4\n', ":1: a cell in quotes", {}),
        ("1,2\n,4\n", ":2: empty", {}),
    ],
)
def test_columns_that_do_not_fit_are_told(text, words, options, tmp_path):
    refused(tmp_path, text, words, **{"columns": None, **options})


# -- separators, numbers, names ------------------------------------------------------------------------

SAME = {
    "csv": "10,20\n20,30\n",
    "tsv": "10\t20\n20\t30\n",
    "spaces": "# a comment\n% another\n10 20\n\n  20   30 # the last\n",
    "semicolons": "10;20\n20;30\n",
    "quotes": '"10","20"\n"20","30"\n',
    "quotes and spaces": '"10" "20"\n"20" "30"\n',
    "commas and spaces": "10, 20\n20, 30\n",
    "DOS": "10,20\r\n20,30\r\n",
    "old Mac": "10,20\r20,30\r",
    "byte order mark": "\ufeff10,20\n20,30\n",
    "no last end": "10 20\n20 30",
    "signs and zeros": "+10,020\n20,30\n",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", SAME)
def test_separators(name, packed, tmp_path):
    content = SAME[name].encode()
    file = f"e.txt{'.gz' * packed}"
    contents = read(tmp_path, gzip.compress(content) if packed else content, file)
    assert arcs(contents) == [(10, 20), (20, 30)]
    assert all(type(each) is int for each in contents.node_ids)


def test_names_in_quotes_hold_separators(tmp_path):
    for text in (
        '"Smith, Ann",Bob,2.5\nBob,zoé,1\n',
        '"Smith, Ann" Bob 2.5\nBob zoé 1\n',
        '"Smith, Ann";Bob;2,5\nBob;zoé;1\n',
    ):
        contents = read(tmp_path, text)
        assert arcs(contents) == [("Smith, Ann", "Bob"), ("Bob", "zoé")]
        assert contents.weight.tolist() == [2.5, 1]


def test_semicolons_with_decimal_commas(tmp_path):
    contents = read(tmp_path, "source;target;weight\na;b;0,5\nb;c;1,25e2\n")
    assert contents.weight.tolist() == [0.5, 125]
    assert read(tmp_path, "1;2;0.5\n2;3;7\n").weight.tolist() == [0.5, 7]
    refused(tmp_path, "a;b;1\nb;a;1.234,5\n", "'1.234,5'")
    refused(tmp_path, "Smith, Ann;Bob\n", "quotes")
    for text in ("a b 0,5\nb c 1,5\n", "1 2 0,5\n2 3 1,5\n"):
        refused(tmp_path, text, "decimals")
    refused(tmp_path, "a\tb\t0,5\n", "'0,5'")


@pytest.mark.parametrize("cell", ["1_0", "٣", "1e999", str(2**2000), "nan", "inf", "0x10", "1,5", "five", "", "1\0"])
def test_weights_are_finite_numbers_in_plain_digits(cell, tmp_path):
    refused(tmp_path, f'a,b,1\nb,a,"{cell}"\n', r":2: .* in column 3")
    refused(tmp_path, f'1,2,1\n2,3,"{cell}"\n', r":2: .* in column 3")


def test_negative_weights_are_refused_and_zeros_are_weights(tmp_path):
    refused(tmp_path, "1,2,-1\n2,3,1\n", "-1")
    assert read(tmp_path, "1,2,0\n2,3,1\n").to_graph().weight.tolist() == [0, 1]


@pytest.mark.parametrize("cell", ["1_0", "٣", "2.0", "1e5", "NA", "1.000", "nan", "9" * 5000])
def test_one_odd_number_among_integers_is_no_name(cell, tmp_path):
    refused(tmp_path, f"1,2\n2,{cell}\n", ":2: .* no plain integer")


def test_names_are_words_where_one_is(tmp_path):
    contents = read(tmp_path, "007,b\nb,7\nb,c\n")
    assert arcs(contents) == [("007", "b"), ("b", "7"), ("b", "c")]
    refused(tmp_path, "007,b\nb,7\n", "header")
    assert read(tmp_path, "007,8\n8,7\n").node_ids == (7, 8)
    assert read(tmp_path, f"-5 {10**30}\n7 -5\n").node_ids == (-5, 7, 10**30)


@pytest.mark.parametrize("text", ["a\0b,c\nc,a\0b\n", "1 -> 2\n2 -> 3\n", "a -- b\nb -- a\n"])
def test_what_is_no_name(text, tmp_path):
    refused(tmp_path, text, "e.csv")


def test_hashtags_are_not_lost_as_comments(tmp_path):
    assert arcs(read(tmp_path, "#source\ttarget\n# a comment\n1\t2\n")) == [(1, 2)]
    assert arcs(read(tmp_path, '"#a",b\nb,"#a"\n')) == [("#a", "b"), ("b", "#a")]
    refused(tmp_path, "ann,#a\n#a,bob\n", ":2: '#a,bob'", header=False)
    refused(tmp_path, "#a,#b\n#b,#c\nann,#a\n", ":2: '#b,#c'", header=False)
    refused(tmp_path, "1,2\n2,3 # late\n", "'3 # late'")


def test_known_number_of_nodes_keeps_isolated_nodes(tmp_path):
    (tmp_path / "e.txt").write_text("0 3\n3 4\n")
    assert Graph.from_file(tmp_path / "e.txt").node_ids == (0, 3, 4)
    graph = Graph.from_file(tmp_path / "e.txt", num_nodes=6)
    assert graph.num_nodes == 6
    assert graph.node_ids is None
    assert graph.pairs.tolist() == [[0, 3], [3, 4]]
    with pytest.raises(TadropedgeError, match="got 4"):
        Graph.from_file(tmp_path / "e.txt", num_nodes=4)
    (tmp_path / "e.txt").write_text("ann bob\nbob eve\n")
    with pytest.raises(TadropedgeError, match="'ann'"):
        Graph.from_file(tmp_path / "e.txt", num_nodes=4)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n", exclude_categories=["Z", "C"]), min_size=1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), mark=st.sampled_from([",", ";", "\t"]))
def test_any_names_come_back(tmp_path, pairs, mark):
    quoted = [mark.join('"' + name.replace('"', '""') + '"' for name in pair) for pair in pairs]
    try:
        found = arcs(read(tmp_path, "\n".join(quoted), header=False))
    except TadropedgeError:
        return  # numbers among other numbers, arrows
    wanted = [tuple(name.strip() for name in pair) for pair in pairs]
    whole = all(type(end) is int for arc in found for end in arc)  # "+07" is 7
    assert whole or found == wanted
