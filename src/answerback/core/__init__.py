"""The types that every part shares: replies, content, versions, peers. No I/O."""
