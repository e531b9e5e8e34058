"""Drawing of the package graph in docs/architecture.md (``make architecture``)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import grimp
import networkx as nx

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
START, END = "<!-- drawn by `make architecture` -->\n", "<!-- end of drawing -->"
PROGRAM = "__main__"


def package_graph() -> nx.DiGraph[str]:
    """Return the packages and modules directly below ``zettel``, with an edge to each one that they import."""
    imports = grimp.build_graph("zettel", cache_dir=None)
    names = {module.split(".")[1] for module in imports.modules if "." in module} - {PROGRAM}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(names))
    for importer in sorted(imports.modules):
        for imported in sorted(imports.find_modules_directly_imported_by(importer)):
            ends = [module.split(".")[1] for module in (importer, imported) if "." in module]
            if len(ends) == 2 and ends[0] != ends[1] and names.issuperset(ends):
                graph.add_edge(*ends, packages=int(is_package(ends[1])))
    return graph


def is_package(name: str) -> bool:
    """Return whether a name below ``zettel`` is a folder of modules, unlike ``memory`` or ``errors``."""
    return (PAGE.parents[1] / "zettel" / name).is_dir()


def longest_chain(graph: nx.DiGraph[str]) -> list[str]:
    """Return the packages of the longest chain of imports, modules left out.

    Raises ``ValueError`` if packages import each other in a cycle.
    """
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError(f"packages import each other in a cycle: {sorted(nx.find_cycle(graph))}")
    return [name for name in nx.dag_longest_path(graph, weight="packages") if is_package(name)]


def drawing(graph: nx.DiGraph[str]) -> str:
    """Return the graph in Mermaid's notation, without edges that a longer path implies."""
    drawn = nx.transitive_reduction(graph) if nx.is_directed_acyclic_graph(graph) else graph
    edges = [f"    {_node(source)} --> {_node(target)}" for source, target in sorted(drawn.edges)]
    return "\n".join(["```mermaid", "graph TD", *edges, "```", ""])


def _node(name: str) -> str:
    """Return a package as a node. ``graph`` is a keyword of Mermaid, so that its node has another id."""
    return "graph_[graph]" if name == "graph" else name


def redrawn(page: str) -> str:
    """Return the page with a new drawing."""
    pattern = re.escape(START) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: START + drawing(package_graph()) + END, page, flags=re.DOTALL)


def main() -> int:
    """Redraw the page and print the longest chain."""
    PAGE.write_text(redrawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        chain = longest_chain(package_graph())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(chain)} packages in the longest chain: {' → '.join(chain)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
