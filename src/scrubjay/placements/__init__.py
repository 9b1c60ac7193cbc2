"""Plausible placements: manipulations that are known to succeed, and episodes of OM made of them."""
