"""The browser: a server where people hide and seek, watch games, and take part in studies."""
