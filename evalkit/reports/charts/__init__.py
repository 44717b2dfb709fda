"""Charts for a design review, as SVG, PNG and PDF, and as SVG to stand in a page."""

from evalkit.reports.charts.draw import KINDS, Chart, ChartsMissing, draw_charts

__all__ = ["KINDS", "Chart", "ChartsMissing", "draw_charts"]
