//! The header block of a tool file: bytes in, metadata out. No I/O.
