"""Types shared by every part of the library: replies, content, versions, peers. No I/O."""
