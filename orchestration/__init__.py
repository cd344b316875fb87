"""What is declared, planned, run, recorded, tracked and reported. The only package that knows Ray and MLflow."""
