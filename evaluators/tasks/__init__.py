"""What is measured: a task names its texts and scores their embeddings. One file a family or benchmark."""
