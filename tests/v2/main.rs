//! A host with control groups of version 2.
