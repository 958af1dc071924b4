"""Five versions of the Model Context Protocol: messages only, independent of the wire."""
