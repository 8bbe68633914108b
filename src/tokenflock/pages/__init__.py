"""Pages for a browser: one HTML file each, with everything inside."""
