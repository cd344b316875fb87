"""How is it shown? Findings as text, tables, plots and one HTML page."""
