"""Runs that come back to where they were: cycles in what an exploration reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: From each state the states that follow, each with the move that leads there.
Edges = Mapping[int, Sequence[tuple[int, int]]]


def find_cycle(edges: Edges) -> tuple[tuple[int, ...], int] | None:
    """The moves of a way from state 0 that ends where it was after so many of them; None without cycles."""
    done: set[int] = set()
    path, on_path = [0], {0}
    moves: list[int] = []
    left = [iter(edges.get(0, ()))]
    while path:
        for after, move in left[-1]:
            if after in on_path:
                return (*moves, move), path.index(after)
            if after not in done:
                path.append(after)
                on_path.add(after)
                moves.append(move)
                left.append(iter(edges.get(after, ())))
                break
        else:
            over = path.pop()
            done.add(over)
            on_path.discard(over)
            left.pop()
            if moves:
                moves.pop()
    return None
