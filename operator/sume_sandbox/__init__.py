"""A simulated Sume over real HTTP: the contract of the Sume API, scripted jobs and faults on demand."""
