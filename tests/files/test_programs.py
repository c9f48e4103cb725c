"""Small files as other programs write them, typed from their documented formats: read right, or refused."""

import pytest

from tadropedge import TadropedgeError
from tadropedge.files import read_file

AB = [("a", "b"), ("b", "c")]
INTS = [(1, 2), (2, 3)]
HALF = [0.5, 1.0]
ADJLIST = "#graph.py\n# GMT Thu Jan  1 00:00:00 2026\n#\n0 1 2 3\n1 2\n2\n3\n"
GEPHI = "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Undirected,0,,,0.5\n2,3,Undirected,1,,,1.0\n"
SNAP = "# Undirected graph: ca.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n"
XML = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>\n'
IGRAPH = XML.format(
    '<key id="v_name" for="node" attr.name="name" attr.type="string"/>'
    '<key id="e_weight" for="edge" attr.name="weight" attr.type="double"/>'
    '<graph id="G" edgedefault="undirected">'
    '<node id="n0"><data key="v_name">ann</data></node><node id="n1"/><node id="n2"/>'
    '<edge source="n0" target="n1"><data key="e_weight">0.5</data></edge>'
    '<edge source="n1" target="n2"><data key="e_weight">1</data></edge></graph>'
)
GEPHI_XML = XML.format(
    '<key attr.name="label" attr.type="string" for="node" id="label"/>'
    '<key attr.name="Edge Label" attr.type="string" for="edge" id="edgelabel"/>'
    '<key attr.name="weight" attr.type="double" for="edge" id="weight"/>'
    '<graph edgedefault="undirected"><node id="1"><data key="label">ann</data></node><node id="2"/><node id="3"/>'
    '<edge id="0" source="1" target="2"><data key="weight">0.5</data></edge>'
    '<edge id="1" source="2" target="3"><data key="weight">1.0</data></edge></graph>'
)
NESTED_XML = XML.format(
    '<graph id="G" edgedefault="undirected"><node id="g"><graph id="g:" edgedefault="undirected"><node id="g::a"/>'
    '<node id="g::b"/><edge source="g::a" target="g::b"/></graph></node><node id="c"/></graph>'
)
NO_LINK = XML.format('<graph edgedefault="undirected"><node id="a"/><node id="b"/></graph>')
MM = "%%MatrixMarket matrix coordinate {}\n%-----\n% UF Sparse Matrix Collection, Tim Davis, café\n"

READ = {  # program: file, content, edges, weights
    "pandas, to_csv": ("e.csv", ",source,target,weight\n0,a,b,0.5\n1,b,c,1.0\n", AB, HALF),
    "pandas, no index, no header": ("e.csv", "a,b,0.5\nb,c,1.0\n", AB, HALF),
    "pandas, sep=';', decimal=','": ("e.csv", "source;target;weight\n1;2;0,5\n2;3;1,0\n", INTS, HALF),
    "pandas, QUOTE_ALL": ("e.csv", '"1","2"\n"2","3"\n', INTS, None),
    "networkx, write_weighted_edgelist": ("e.edgelist", "a b 0.5\nb c 1.0\n", AB, HALF),
    "networkx, write_edgelist(data=False)": ("e.edgelist", "1 2\n2 3\n", INTS, None),
    "igraph, write_ncol": ("e.ncol", "a b 0.5\nb c 1\n", AB, HALF),
    "igraph, write_edgelist": ("e.txt", "1 2\n2 3\n", INTS, None),
    "igraph, write_graphml": ("e.graphml", IGRAPH, [("n0", "n1"), ("n1", "n2")], HALF),
    "R, write.csv": ("e.csv", '"","from","to","weight"\n"1","a","b",0.5\n"2","b","c",1\n', AB, HALF),
    "R, write.csv2": ("e.csv", '"";"from";"to";"weight"\n"1";"a";"b";0,5\n"2";"b";"c";1\n', AB, HALF),
    "R, write.table(row.names=FALSE)": ("e.txt", '"from" "to" "weight"\n"a" "b" 0.5\n"b" "c" 1\n', AB, HALF),
    "R, writeMM": ("e.mtx", MM.format("pattern general") + "4 4 2\n2 3 \n3 4\n", INTS, None),
    "SuiteSparse": ("e.mtx", MM.format("real symmetric") + "4 4 2\n3 2 0.5\n4 3 1e0\n", [(2, 1), (3, 2)], HALF),
    "Excel, CSV UTF-8": ("e.csv", "\ufeffSource;Target;Weight\r\na;b;0,5\r\nb;c;1,00\r\n", AB, HALF),
    "Excel, tab stops": ("e.txt", "Source\tTarget\tWeight\r\na\tb\t0.5\r\nb\tc\t1\r\n", AB, HALF),
    "igraph, a graph without edges": ("e.graphml", NO_LINK, [], None),
    "Gephi, edges": ("e.csv", GEPHI, INTS, HALF),
    "Gephi, GraphML": ("e.graphml", GEPHI_XML, INTS, HALF),
    "SNAP": ("e.txt", SNAP, INTS, None),
    "KONECT": ("e.tsv", "% sym weighted\n% 2 3 3\n1 2 0.5\n2 3 1 \n", INTS, HALF),
    "Neo4j": ("e.csv", ":START_ID,:END_ID,weight\na,b,0.5\nb,c,1\n", AB, HALF),
}
REFUSED = {  # program: file, content, words
    "pandas, NaN": ("e.csv", "source,target,weight\na,b,\nb,c,1.0\n", "''"),
    "pandas, integers that became floats": ("e.csv", "source,target\n1,2.0\n2,3.0\n", "'2.0'"),
    "pandas, a column of True": ("e.csv", "source,target,known\n1,2,True\n2,3,False\n", "known"),
    "pandas, to_json": ("e.csv", '[{"source":1,"target":2},{"source":2,"target":3}]', "JSON"),
    "pandas, to_json(lines=True)": ("e.txt", '{"source":1,"target":2}\n{"source":2,"target":3}\n', "JSON"),
    "pandas, to_csv of a matrix": ("e.csv", ",A,B\nA,0,1\nB,1,0\n", "matrix"),
    "networkx, write_edgelist": ("e.edgelist", "1 2 {}\n2 3 {}\n", "{}"),
    "networkx, write_edgelist with weights": ("e.edgelist", "1 2 {'weight': 0.5}\n2 3 {'weight': 1}\n", "columns"),
    "networkx, write_adjlist": ("e.txt", ADJLIST, ":5: expected 4 columns"),
    "networkx, write_pajek": ("e.txt", '*vertices 2\n1 a 0.0 0.0 ellipse\n*edges\n1 2 1.0\n', "columns"),
    "networkx, write_gml": ("e.txt", "graph [\n  node [\n    id 0\n  ]\n]\n", "columns"),
    "yEd, groups": ("e.graphml", NESTED_XML, "one graph"),
    "R, write.table": ("e.txt", '"from" "to"\n"1" "a" "b"\n"2" "b" "c"\n', ":2: expected 2 columns, got 3"),
    "R, NA": ("e.csv", '"from","to"\n1,2\n2,NA\n', "'NA'"),
    "Excel, sep=": ("e.csv", "sep=;\r\nSource;Target\r\na;b\r\n", "Excel"),
    "Excel, large numbers": ("e.csv", "Source,Target\r\n100,2\r\n1E+05,3\r\n", "'1E\\+05'"),
    "Excel, thousands": ("e.csv", "Source;Target;Weight\r\na;b;1\r\nb;c;1.234,5\r\n", "'1.234,5'"),
    "Excel, Unicode text": ("e.txt", "a\tb\n".encode("utf-16"), "UTF-8"),
    "Excel, a workbook": ("e.xlsx", b"PK\3\4", "suffix"),
    "Gephi, a matrix": ("e.csv", ";A;B;C\nA;0;1;1\nB;1;0;0\nC;1;0;0\n", "matrix"),
    "KONECT, with times": ("e.tsv", "% sym weighted\n1 2 1 1234567\n2 3 1 1234568\n", "columns"),
    "Neo4j, kinds": ("e.csv", ":START_ID,:TYPE,:END_ID\n1,KNOWS,2\n2,KNOWS,3\n", ":TYPE"),
    "Latin-1": ("e.csv", "zoé,b\n".encode("latin1"), "UTF-8"),
    "GraphML by another name": ("e.txt", IGRAPH, "XML"),
    "Matrix Market by another name": ("e.txt", MM.format("pattern general") + "2 2 1\n2 1\n", ".mtx"),
    "Graphviz": ("e.txt", "1 -> 2\n2 -> 3\n", "->"),
}  # fmt: skip


def written(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("program", READ)
def test_read(program, tmp_path):
    name, content, edges, weight = READ[program]
    contents = read_file(written(tmp_path, name, content))
    called = range(contents.num_nodes) if contents.node_ids is None else contents.node_ids
    assert [tuple(called[node] for node in arc) for arc in contents.arcs.T] == edges
    assert (None if contents.weight is None else contents.weight.tolist()) == weight


@pytest.mark.parametrize("program", REFUSED)
def test_refused(program, tmp_path):
    name, content, words = REFUSED[program]
    with pytest.raises(TadropedgeError, match=words) as caught:
        read_file(written(tmp_path, name, content))
    assert name in str(caught.value)
