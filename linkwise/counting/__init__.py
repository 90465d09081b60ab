"""Operation counts of algorithms, beside what the papers print."""
