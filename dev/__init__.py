"""What develops and judges superarm, and is not part of it: tools, benchmarks, contests."""
