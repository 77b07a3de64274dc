//! Against a server that others wrote.
