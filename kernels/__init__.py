"""Protocols as array programs, and the engines that step them."""
