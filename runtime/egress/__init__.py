"""The only HTTP client for requests to addresses that users or settings name.

Addresses are checked, answers are bounded, and a deadline covers the whole request.
"""
