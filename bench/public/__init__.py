"""`python -m bench public`: two public workloads, with servers of others beside ours."""
