"""The same tool on what people use today."""
