"""The report page: one HTML file that needs nothing but itself. `render` makes it; nothing here judges."""
